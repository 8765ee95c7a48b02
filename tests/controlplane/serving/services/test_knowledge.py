"""Forgetting what was learned, on engines and routers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.common.permissions import NotPermittedError
from controlplane.operations.models import Operation
from controlplane.serving import services
from tests.controlplane.serving.boundary import Boundary
from tests.controlplane.serving.factories import make_pool
from tests.controlplane.serving.processes import secret_file
from tests.controlplane.serving.rows import make_endpoint
from tests.factories import make_ben, make_olga

pytestmark = pytest.mark.django_db


class Place:
    """An engine or a router that notes what it was asked."""

    def __init__(self) -> None:
        self.status, self.asked = 200, list[str]()
        self.server = Boundary(self._respond)

    def _respond(self, method: str, path: str, body: bytes, _: object) -> tuple[int, bytes]:
        self.asked.append(f"{method} {path} {body.decode()}".strip())
        return self.status, b"{}"


@pytest.fixture
def places(tmp_path: Path) -> Iterator[tuple[Place, Place]]:
    engine, router = Place(), Place()
    services.register_router(
        name="r1", admin_url=router.server.url, public_url=router.server.url, actor=None,
        token_reference=f"file:{secret_file(tmp_path)}",
    )  # fmt: skip
    yield engine, router
    engine.server.close()
    router.server.close()


def test_caches_are_emptied_before_routers_forget(places: tuple[Place, Place]) -> None:
    engine, router = places
    pool = make_pool(slug="granite")
    make_endpoint(pool=pool, url=engine.server.url)
    operation = services.reset_pool_knowledge(pool_id=pool.pk, actor=make_olga(), reason="race")

    services.run_knowledge_reset(operation_id=operation.pk)
    services.run_knowledge_reset(operation_id=operation.pk)

    assert engine.asked == ["POST /reset_prefix_cache"]
    assert router.asked == ['POST /admin/reset-knowledge {"pool":"granite"}']
    operation.refresh_from_db()
    assert operation.state == "succeeded"
    assert [step.detail for step in operation.steps.all()] == ["1 engines", "1 routers"]


def test_an_engine_that_does_not_do_it_fails_the_operation_with_its_address(
    places: tuple[Place, Place],
) -> None:
    engine, router = places
    engine.status = 500
    pool = make_pool()
    make_endpoint(pool=pool, url=engine.server.url)
    operation = services.reset_pool_knowledge(pool_id=pool.pk, actor=make_olga())

    services.run_knowledge_reset(operation_id=operation.pk)

    operation.refresh_from_db()
    assert operation.state == "failed"
    assert f"{engine.server.url}/reset_prefix_cache answered 500." in operation.error["detail"]
    assert router.asked == []


def test_people_of_a_tenant_cannot_do_it() -> None:
    pool = make_pool()

    with pytest.raises(NotPermittedError):
        services.reset_pool_knowledge(pool_id=pool.pk, actor=make_ben())

    assert not Operation.objects.exists()
