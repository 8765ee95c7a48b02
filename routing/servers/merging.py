"""Many processes' figures as those of one router (pure): metrics pages and states.

Counters and histograms of a metrics page are added; a gauge stays apart by a label `process`. Of a
state, what each process has open is added; what all observe alike is taken from whoever looked
last.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

ADDED = frozenset(
    {
        "leases_open",
        "inflight_requests",
        "inflight_prefill_tokens",
        "inflight_sequences",
    }
)
"""Numbers of a state that are of one process only."""
ADDED_WHOLE = frozenset({"queue", "shadow"})
"""Parts of a pool in which every number is of one process only."""
_OPEN = ("open", "half-open")


def merge_decisions(own: dict[str, Any], told: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The lines of the router with what each of its processes counted beside them."""
    merged = own | {"shadow": {}, "policies": {}, "sample_rates": {}}
    for part in told:
        merged["left_out"] += part["left_out"]
        for name in ("policies", "sample_rates"):
            merged[name] |= part[name]
        for pool, policies in part["shadow"].items():
            sums = merged["shadow"].setdefault(pool, {})
            for policy, counted in policies.items():
                before = sums.get(policy, {})
                sums[policy] = {key: before.get(key, 0) + n for key, n in counted.items()}
    return merged


@dataclass(slots=True)
class Family:
    """One metric with its series, by their full name with labels."""

    kind: str
    help_line: str
    series: dict[str, float] = field(default_factory=dict)


Page = dict[str, Family]


def parse_page(text: str) -> Page:
    """Read what `prometheus_client` writes; lines that are not of that form are left out."""
    page: Page = {}
    help_line, family = "", Family("untyped", "")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            help_line = line
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ", 3)
            family = page[name] = Family(kind, help_line)
        elif line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            family.series[name] = _float(value)
    return page


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def is_counted(family: Family) -> bool:
    """Whether the family only grows, so that it can be added and outlives its process."""
    return family.kind in ("counter", "histogram", "summary")


def merge_pages(pages: Mapping[str, Page], *, retired: Page) -> Page:
    """Pages by process ("" needs no label); `retired` is what ended processes had counted."""
    merged: Page = {}
    for process, page in [("", retired), *pages.items()]:
        for name, family in page.items():
            into = merged.setdefault(name, Family(family.kind, family.help_line))
            if name.endswith("_created"):
                _combine(into, family, min)
            elif is_counted(family):
                _combine(into, family, _add)
            else:
                for series, value in family.series.items():
                    into.series[_with_label(series, process)] = value
    return merged


def retire(retired: Page, page: Page) -> None:
    """Keep what an ended process had counted, so that no counter ever falls."""
    for name, family in page.items():
        if is_counted(family):
            _combine(retired.setdefault(name, Family(family.kind, family.help_line)), family, _add)


def _combine(into: Family, family: Family, together: Callable[[float, float], float]) -> None:
    for series, value in family.series.items():
        known = into.series.get(series)
        into.series[series] = value if known is None else together(known, value)


def _add(one: float, other: float) -> float:
    return one + other


def _with_label(series: str, process: str) -> str:
    if not process:
        return series
    name, brace, labels = series.partition("{")
    own = f'process="{process}"'
    return f"{name}{{{own},{labels}" if brace else f"{name}{{{own}}}"


def write_page(page: Page) -> bytes:
    """The opposite of `parse_page`."""
    lines: list[str] = []
    for name, family in page.items():
        if family.help_line:
            lines.append(family.help_line)
        lines.append(f"# TYPE {name} {family.kind}")
        lines += [f"{series} {value!r}" for series, value in family.series.items()]
    return ("\n".join(lines) + "\n").encode()


def merge_pools(states: list[dict[str, Any]]) -> dict[str, Any]:
    """The pools of all processes' states."""
    names = sorted({name for state in states for name in state["pools"]})
    return {
        name: _pool([state["pools"][name] for state in states if name in state["pools"]])
        for name in names
    }


def _pool(parts: list[dict[str, Any]]) -> dict[str, Any]:
    merged = _added(parts, parts[0])
    for name in ADDED_WHOLE & merged.keys():
        merged[name] = add_numbers([part.get(name) for part in parts])
    if "endpoints" in merged:
        merged["endpoints"] = [
            _endpoint(found)
            for found in _by_id([part.get("endpoints", []) for part in parts]).values()
        ]
    return merged


def _by_id(lists: Iterable[list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for endpoints in lists:
        for endpoint in endpoints:
            found.setdefault(endpoint["id"], []).append(endpoint)
    return found


def _endpoint(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The freshest view; own work added; an open breaker before a closed one."""
    freshest = min(parts, key=_age)
    merged = _added(parts, freshest)
    if "peers_requests" in merged:
        # What one process knows of the others is in the sum already; what is left is other routers.
        most = max(part["inflight_requests"] + part["peers_requests"] for part in parts)
        merged["peers_requests"] = max(0, most - merged["inflight_requests"])
    broken = [part for part in parts if part.get("breaker", {}).get("state") in _OPEN]
    if broken:
        merged["breaker"] = broken[0]["breaker"]
    return merged


def _age(endpoint: dict[str, Any]) -> float:
    age = endpoint.get("signal_age_seconds")
    return math.inf if age is None else float(age)


def _added(parts: list[dict[str, Any]], base: dict[str, Any]) -> dict[str, Any]:
    sums = {name: sum(part.get(name) or 0 for part in parts) for name in ADDED & base.keys()}
    return base | sums


def add_numbers(parts: list[Any]) -> Any:
    """Add numbers wherever they stand in equal structures; anything else is the first one's."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    first = known[0]
    if isinstance(first, dict):
        names = dict.fromkeys(name for part in known for name in part)
        return {name: add_numbers([part.get(name) for part in known]) for name in names}
    if isinstance(first, bool) or not isinstance(first, int | float):
        return first
    return sum(known)
