"""Health of a node out of what was said about it; pure, in the words of the health column.

A verdict is (health, reason). Two views exist: of the devices one by one, and of the cluster. The
worse one holds, since a healthy card in a machine that the cluster does not hear is of no use.
"""

from inventory.discovery.base import FoundNode
from inventory.discovery.comparing import Comparison

Verdict = tuple[str, str]

HEALTHY: Verdict = ("healthy", "")
NOT_SAID: Verdict = ("unknown", "not-reported")
_WORST_FIRST = ("failed", "unknown", "degraded", "healthy")
_BY_STATE: dict[str, Verdict] = {
    "gone": ("unknown", "node-gone"),
    "lost": ("unknown", "node-lost"),
    "not-ready": ("failed", "node-not-ready"),
}


def worse(*verdicts: Verdict) -> Verdict:
    """The worst of them; of equals the first."""
    return min(verdicts, key=lambda verdict: _WORST_FIRST.index(verdict[0]))


def of_cluster(found: FoundNode, result: Comparison) -> Verdict:
    """What a cluster's look says about the node; unknown where it says nothing."""
    by_state = _BY_STATE.get(found.state)
    return by_state if by_state is not None else _of_devices(found, result)


def _of_devices(found: FoundNode, result: Comparison) -> Verdict:
    kinds = {each.kind for each in result.differences}
    if "vendor-differs" in kinds:
        return ("failed", "accelerator-missing")
    if not found.vendor or (found.count is None and found.usable is None):
        return NOT_SAID
    if found.usable == 0:
        return ("failed", "not-usable")
    if kinds & {"fewer-devices", "missing", "serial-differs"}:
        return ("degraded", "accelerator-missing")
    return ("degraded", "not-usable") if "not-usable" in kinds else HEALTHY


def of_unsaid_device(found: FoundNode, result: Comparison) -> Verdict:
    """What a look that only counts says about each device: all of them, or nothing."""
    if found.state in ("gone", "lost"):
        return _BY_STATE[found.state]
    if result.all_usable:
        return HEALTHY
    is_counted = found.count is not None or found.usable is not None
    return ("unknown", "counted") if found.vendor and is_counted else NOT_SAID
