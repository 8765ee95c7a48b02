"""Where routers are, what they may be asked with, and what a pool's figures are worth."""

from pathlib import Path

import pytest

from controlplane.metering import selectors
from controlplane.serving.models import Router
from tests.controlplane.finance.rows import make_pool
from tests.controlplane.metering.rows import HOUR, make_usage_hour

pytestmark = pytest.mark.django_db


def make_router(name: str, reference: str, **overrides: object) -> Router:
    return Router.objects.create(
        name=name,
        admin_url=f"http://127.0.0.1:1/{name}",
        public_url="http://127.0.0.1:2",
        token_reference=reference,
        **overrides,
    )


def test_tokens_come_from_where_the_reference_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("from-file\n")
    monkeypatch.setenv("ROUTER_TOKEN", "from-env")
    make_router("a", f"file:{tmp_path / 'token'}")
    make_router("b", "env:ROUTER_TOKEN")
    make_router("c", f"file:{tmp_path / 'nothing'}")
    make_router("d", "env:ROUTER_TOKEN", enabled=False)

    addresses = selectors.router_addresses()

    assert {name: address.token for name, address in addresses.items()} == {
        "a": "from-file",
        "b": "from-env",
        "c": "",
    }


@pytest.mark.parametrize(("engine", "word"), [("simulated", "simulated"), ("vllm", "measured")])
def test_figures_of_a_pool_are_worth_what_its_engines_are(engine: str, word: str) -> None:
    make_pool(engine=engine)

    assert selectors.evidence_of_pool("granite") == word
    assert selectors.evidence_of_pool("nobodys") == "measured"


def test_gateway_tokens_are_all_buckets_and_all_waste() -> None:
    make_usage_hour(input_uncached=1, cache_read=2, output=4, reasoning=8, waste_output=16)
    make_usage_hour(input_uncached=0, cache_read=0, output=32, node="gpu-2")

    assert selectors.gateway_tokens(pool="granite", hour=HOUR) == 63
    assert selectors.gateway_tokens(pool="other", hour=HOUR) == 0
