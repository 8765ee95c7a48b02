"""Can the prefill engines hand their KV to the decode engines, and at what cost?"""

from typing import TYPE_CHECKING, Any

import msgspec
from django.utils.translation import gettext as _

from controlplane.serving import selectors
from controlplane.serving.checks.base import CheckResult, Verdict
from controlplane.serving.deployments import engine_request
from controlplane.serving.engines import launcher
from controlplane.serving.plans import items_of, roles_after
from inventory.models import Accelerator
from routing.core.document import KvContract
from routing.core.pairing import PairVerdict, pair

if TYPE_CHECKING:
    from controlplane.serving.models import ChangePlan

Pairs = dict[tuple[str, str], PairVerdict]


def check(plan: "ChangePlan") -> CheckResult:
    """Judge each pair of accelerator models that the roles afterwards make possible."""
    if not plan.role:
        return CheckResult(verdict="pass", sentence=_("The plan starts no engine."))
    pairs = _pairs(plan)
    numbers = {"pairs": [_row(*names, verdict) for names, verdict in sorted(pairs.items())]}
    verdict, sentence = _judge(pairs)
    return CheckResult(verdict=verdict, sentence=sentence, numbers=numbers)


def _pairs(plan: "ChangePlan") -> Pairs:
    before = {
        str(row.accelerator_id): row.assignment.role for row in selectors.open_roles(pool=plan.pool)
    }
    after = roles_after(before, items_of(plan.diff))
    contracts: dict[tuple[str, str], KvContract] = {}
    for accelerator in Accelerator.objects.filter(pk__in=after).select_related("model", "node"):
        role = after[str(accelerator.pk)]
        key = (role, accelerator.model.slug)
        if role != "both" and key not in contracts:
            contracts[key] = _contract(plan, accelerator, role)
    return {
        (prefill, decode): pair(
            contracts["prefill", prefill],
            contracts["decode", decode],
            kv_bytes_per_token=plan.pool.model.kv_bytes_per_token,
        )
        for prefill in (name for role, name in contracts if role == "prefill")
        for decode in (name for role, name in contracts if role == "decode")
    }


def _contract(plan: "ChangePlan", accelerator: Accelerator, role: str) -> KvContract:
    request = engine_request(plan.pool, accelerator, role=role)
    return msgspec.convert(launcher(plan.pool.engine).kv_contract(request), KvContract)


def _judge(pairs: Pairs) -> tuple[Verdict, str]:
    if not pairs:
        return "pass", _("No engine hands KV to another one.")
    bad = {names: v for names, v in pairs.items() if v.verdict in {"incompatible", "unknown"}}
    if len(bad) == len(pairs):
        names, verdict = next(iter(sorted(bad.items())))
        text = _("No prefill engine can hand KV to a decode engine. {pair}: {reason}")
        return "block", text.format(pair=" → ".join(names), reason=verdict.reason)
    if bad:
        listed = ", ".join(" → ".join(names) for names in sorted(bad))
        return "warn", _("These pairs cannot be used: {pairs}.").format(pairs=listed)
    staged = {names: v for names, v in pairs.items() if v.verdict == "compatible_with"}
    if staged:
        costs = [
            v.seconds_per_1000_tokens
            for v in staged.values()
            if v.seconds_per_1000_tokens is not None
        ]
        cost = f"{max(costs):.3f}" if costs else _("unknown")
        text = _(
            "KV passes through host memory for {count} of {total} pairs, at most {cost} s per "
            "1,000 tokens."
        )
        return "pass", text.format(count=len(staged), total=len(pairs), cost=cost)
    return "pass", _("Every pair of prefill and decode is compatible.")


def _row(prefill: str, decode: str, verdict: PairVerdict) -> dict[str, Any]:
    return {
        "prefill": prefill,
        "decode": decode,
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "staging": verdict.staging,
        "missing": list(verdict.missing),
        "seconds_per_1000_tokens": verdict.seconds_per_1000_tokens,
    }
