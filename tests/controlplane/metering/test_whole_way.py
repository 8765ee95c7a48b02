"""From a real router and real engines to hours that agree with each other, to the token."""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from django.utils import timezone

from controlplane.finance import selectors as finance
from controlplane.metering import selectors, services
from controlplane.metering.models import Reconciliation, UsageHour
from controlplane.metering.sources.router import RouterAddress
from controlplane.telemetry import services as telemetry
from routing.core.document import encode_document
from tests.controlplane.finance.rows import assign, make_asset_cost, make_pool
from tests.controlplane.serving.processes import PROJECT, TOKEN, RouterProcess, until
from tests.controlplane.telemetry.rows import make_node
from tests.routing.servers.scripted import MODEL, SECRET, Engine, document

pytestmark = [pytest.mark.django_db, pytest.mark.processes]
ROLES = ("prefill", "decode", "both")
REQUESTS = 30


@pytest.fixture
def router(tmp_path: Path) -> Iterator[RouterProcess]:
    process = RouterProcess("r1", tmp_path / "router")
    yield process
    process.close()


@pytest.fixture
def engines() -> Iterator[dict[str, int]]:
    """A simulated engine per role; its port by role."""
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "routing.testbed.engine", "--port", "0", "--model", MODEL,
             "--speed", "20", "--accelerator", "amd-mi325x", "--role", role],
            stdout=subprocess.PIPE, cwd=PROJECT,
        )
        for role in ROLES
    ]  # fmt: skip
    yield {
        role: json.loads(child.stdout.readline())["port"]  # type: ignore[union-attr]  # a pipe
        for role, child in zip(ROLES, children, strict=True)
    }
    for child in children:
        child.terminate()
        child.wait(10)
        assert child.stdout is not None
        child.stdout.close()


def register(engines: dict[str, int]) -> None:
    """What serving does: priced accelerators with roles, and a scrape target per engine."""
    node = make_node(accelerators=len(ROLES))
    make_asset_cost(node)
    pool = make_pool(slug="main")
    accelerators = node.accelerators.order_by("slot")
    for (role, port), accelerator in zip(engines.items(), accelerators, strict=True):
        since = timezone.now() - timedelta(minutes=1)
        assign(pool, [accelerator], role, valid_from=since)
        telemetry.register_engine(
            telemetry.EngineTarget(
                endpoint=role,
                instance=f"{role}-{port}",
                metrics_url=f"http://127.0.0.1:{port}/metrics",
                engine="vllm",
                node=node,
                accelerators=[accelerator],
                pool="main",
                role=role,
                source="simulated",
            )
        )


def give_document(router: RouterProcess, engines: dict[str, int], *, policy: str) -> None:
    async def nothing(*_: object) -> None:
        raise NotImplementedError

    specs = [Engine(role, nothing, port=port) for role, port in engines.items()]
    content = encode_document(
        document(specs, roles={role: role for role in engines}, policy={"name": policy})
    )
    answer = httpx.put(
        f"{router.admin_url}/admin/pool-document", content=content,
        headers={"Authorization": f"Bearer {TOKEN}"}, timeout=10,
    )  # fmt: skip
    assert answer.status_code == 200, answer.text


def ask(router: RouterProcess, number: int) -> int:
    body = {
        "model": MODEL,
        "max_tokens": 20,
        "stream": bool(number % 3),
        "messages": [{"role": "user", "content": f"{number % 4} " * 3000}],
    }
    answer = httpx.post(
        f"{router.public_url}/v1/chat/completions", json=body, timeout=60,
        headers={"Authorization": f"Bearer {SECRET}"},
    )  # fmt: skip
    return answer.status_code


def test_routers_and_engines_agree_to_the_token(
    router: RouterProcess, engines: dict[str, int]
) -> None:
    register(engines)
    give_document(router, engines, policy="consort")
    address = RouterAddress(admin_url=router.admin_url, token=TOKEN)

    with ThreadPoolExecutor(8) as callers:
        statuses = list(callers.map(lambda number: ask(router, number), range(REQUESTS)))

    def all_pulled() -> bool:
        services.pull_router(name="r1", address=address)
        services.recompute_stale_hours()
        return sum(row.requests for row in UsageHour.objects.all()) >= REQUESTS

    until(all_pulled)
    telemetry.scrape_engines()
    now = timezone.now()
    for hour in sorted(set(UsageHour.objects.values_list("hour", flat=True))):
        telemetry.recompute_hour(hour=hour, now=now)
    services.reconcile_recent(now=now)

    assert set(statuses) == {200}
    rows = Reconciliation.objects.filter(pool="main")
    gateway = sum(row.gateway_tokens for row in rows)
    assert gateway == sum(row.engine_tokens or 0 for row in rows) > REQUESTS * 1000
    (whole,) = selectors.usage_grouped(UsageHour.objects.all())
    assert whole.total_tokens == gateway
    assert whole.buckets["cache_read"] > 0
    assert whole.counts["requests_failed"] == 0

    comparison = finance.policy_comparison(
        pool="main", start=now - timedelta(hours=1), end=now + timedelta(seconds=1)
    )
    (policy,) = comparison.rows
    assert policy.figures.policy == "consort"
    assert policy.figures.requests_ok == REQUESTS
    assert policy.cost_per_million_output_tokens is not None
    assert policy.figures.ttft_p50_seconds is not None
    assert policy.source == "simulated"
