"""Clients notice nothing of a role change and of its way back."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.serving import services
from controlplane.serving.models import Endpoint
from tests.controlplane.serving.factories import make_applying, make_fleet_node, make_pool
from tests.controlplane.serving.processes import PROJECT, EngineHost, RouterProcess
from tests.controlplane.serving.services.test_loop import register, run_to_the_end
from tests.factories import make_inference_key, make_olga

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


def start_load(router: RouterProcess, secret: str, report: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "routing.testbed.load", "--url", router.public_url, "--key", secret,
         "--model", "granite-4.1-8b", "--rate", "6", "--duration", "12", "--groups", "10",
         "--system-tokens", "1000", "--question-tokens", "200", "--output-tokens", "40",
         "--seed", "7", "--report", str(report)],
        cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def test_no_request_fails_during_a_change_and_its_rollback(
    engine_host: EngineHost, router_process: RouterProcess, tmp_path: Path
) -> None:
    _key, secret = make_inference_key()
    register(router_process)
    pool = make_pool(engine_arguments={"speed": 4})
    amd, nvidia = make_fleet_node(accelerators=1), make_fleet_node("nvidia-h100-nvl")
    run_to_the_end(make_applying(pool, amd, role="decode"))
    run_to_the_end(make_applying(pool, nvidia, role="prefill"))
    report = tmp_path / "load.json"
    load = start_load(router_process, secret, report)

    plan = make_applying(pool, nvidia, role="decode", accelerators_per_wave=1, drain_seconds=20.0)
    plan = run_to_the_end(plan)
    changed = plan.state
    services.rollback_plan(plan_id=plan.pk, actor=make_olga(), reason="test")
    plan = run_to_the_end(plan)
    load.wait(120)

    assert (changed, plan.state) == ("succeeded", "rolled_back"), plan.outcome
    result = json.loads(report.read_text())
    assert result["failed"] == 0, result
    assert result["ok"] == result["sent"] > 40
    roles = Endpoint.objects.filter(node=nvidia, state="ready").values_list("role", flat=True)
    assert set(roles) == {"prefill"}
