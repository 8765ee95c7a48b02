"""Routers are registered, heard, and taken out of use; tokens are read where they are kept."""

from pathlib import Path
from typing import Any

import pytest

from controlplane.common.permissions import NotPermittedError
from controlplane.serving import services
from controlplane.serving.errors import PolicyRefusedError, RouterTokenError
from controlplane.serving.models import Router
from tests.controlplane.serving.factories import make_pool
from tests.controlplane.serving.processes import secret_file
from tests.factories import make_ben, make_olga

pytestmark = pytest.mark.django_db


def register(name: str, url: str, folder: Path, **overrides: Any) -> Router:
    values = {
        "name": name, "admin_url": url, "public_url": url, "actor": None,
        "token_reference": f"file:{secret_file(folder / name)}",
    }  # fmt: skip
    return services.register_router(**values | overrides)


def test_a_failed_heartbeat_keeps_the_last_time_and_says_why(tmp_path: Path) -> None:
    router = register("r1", "http://127.0.0.1:1", tmp_path)

    heard = services.poll_routers()

    router.refresh_from_db()
    assert (heard, router.heard_at) == (0, None)
    assert "did not answer" in router.failure


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("env:NO_SUCH_TOKEN", "the variable is not set"),
        ("vault:x", "neither file: nor env:"),
        ("file:/does/not/exist", "No such file"),
    ],
)
def test_a_token_that_cannot_be_read_is_said_at_once(
    tmp_path: Path, reference: str, sentence: str
) -> None:
    with pytest.raises(RouterTokenError, match=sentence):
        register("r1", "http://127.0.0.1:1", tmp_path, token_reference=reference)


def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = secret_file(tmp_path)
    path.chmod(0o644)

    with pytest.raises(RouterTokenError, match="mode must be 0600"):
        register("r1", "http://127.0.0.1:1", tmp_path, token_reference=f"file:{path}")


def test_an_unknown_parameter_of_a_policy_is_refused_with_the_known_ones() -> None:
    pool = make_pool()

    with pytest.raises(PolicyRefusedError) as refused:
        services.change_policy(
            pool_id=pool.pk, policy="consort", parameters={"speed": 1}, actor=make_olga()
        )

    assert refused.value.facts["pointer"] == "/policy/parameters/speed"
    assert "harm_weight" in str(refused.value.facts["allowed"])


def test_people_of_a_tenant_change_no_policy() -> None:
    pool = make_pool()

    with pytest.raises(NotPermittedError):
        services.change_policy(pool_id=pool.pk, policy="random", actor=make_ben())
