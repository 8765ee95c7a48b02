"""Change plans of the scene: one proposed, one whose waves are under way."""

from datetime import datetime, timedelta
from typing import Any

from controlplane.serving.models import ChangePlan, Pool, Wave
from controlplane.tenancy.models import User
from inventory.models import Node


def make_plan(
    serial: int, pool: Pool, author: User, node: Node, now: datetime, **fields: Any
) -> ChangePlan:
    devices = list(node.accelerators.order_by("slot"))[:2]
    diff = [
        {
            "accelerator": str(device.pk), "node": str(node.pk), "hostname": node.hostname,
            "slot": device.slot, "vendor": node.vendor, "target": "local",
            "accelerator_model": node.node_type.accelerator_model.slug,
            "workload": f"{node.hostname}-{device.slot}", "from_role": "prefill",
            "to_role": "decode",
        }
        for device in devices
    ]  # fmt: skip
    plan = ChangePlan.objects.create(
        serial=serial, pool=pool, role="decode", author=author, diff=diff,
        reason="decode is the bottleneck since noon", fingerprint="9f3c71d0" * 8,
        expires_at=now + timedelta(hours=20), guards={"max_error_share": 0.05,
                                                      "ttft_p95_seconds": 1.2},
        checks=[
            {"name": "floor", "verdict": "warn", "sentence": "At least 19 of 20 stay.",
             "numbers": {}},
            {"name": "contracts", "verdict": "pass", "sentence": "Through host memory.",
             "numbers": {"pairs": [{
                 "prefill": "nvidia-h100-nvl", "decode": "amd-mi325x",
                 "verdict": "compatible_with", "reason": "host staging",
                 "seconds_per_1000_tokens": 0.0112,
             }]}},
            {"name": "memory", "verdict": "pass", "sentence": "Fits with 77 GB for KV.",
             "numbers": {}},
        ],
        effects={
            "roles": {"before": {"prefill": 4, "decode": 8, "both": 8},
                      "after": {"prefill": 2, "decode": 10, "both": 8}},
            "capacity": {
                "before": {"prefill_tokens_per_second": 412000.0,
                           "decode_tokens_per_second": 14000.0},
                "after": {"prefill_tokens_per_second": 371000.0,
                          "decode_tokens_per_second": None},
            },
        },
        **fields,
    )  # fmt: skip
    for position, item in enumerate(diff, start=1):
        Wave.objects.create(plan=plan, position=position, items=[item])
    return plan


def move_waves(plan: ChangePlan, now: datetime) -> None:
    first, second = plan.waves.order_by("position")
    first.state, first.step, first.ended_at = "succeeded", "done", now
    first.started_at = now - timedelta(minutes=13)
    first.detail = {
        "document": 130,
        "after": {"requests": 400, "failed_share": 0.0, "ttft_p95_at_least": 0.4},
    }
    first.save()
    second.state, second.step = "running", "drain"
    second.started_at = second.step_started_at = now - timedelta(seconds=34)
    second.detail = {"unfinished": 37}
    second.save()
