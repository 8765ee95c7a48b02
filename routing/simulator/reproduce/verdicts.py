"""Bands against results: which are met."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import mean

import msgspec

from routing.simulator.reproduce.measures import Band, Pair, measured, overall
from routing.simulator.reproduce.stages import StageRow
from routing.simulator.reproduce.tasks import FOUR_ROUTERS, GUIDE, USERS
from routing.simulator.reproduce.users import ttft_at, users_served

_FILE = Path(__file__).with_name("bands.yaml")

Results = Mapping[tuple[str, str], Sequence[StageRow]]
"""Rows by case and router, as tasks give them."""

PUBLISHED_FOUR = {
    "precise": 8730.0,
    "approximate": 6944.4,
    "load-only": 4428.7,
    "random": 4428.7,
}
"""Output tokens per second of the four routers (source kvwins)."""
PUBLISHED_USERS = {"service": 20.0, "router": 200.0}
"""Claimed."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Of one band."""

    id: str
    text: str
    low: float | None
    high: float | None
    simulated: float | None
    published: float | None
    is_met: bool


@lru_cache(maxsize=1)
def bands() -> tuple[Band, ...]:
    """As in `bands.yaml`, in order."""
    # Imported here: whoever only simulates does not need it.
    import yaml

    with _FILE.open("rb") as file:
        return msgspec.convert(yaml.safe_load(file)["bands"], tuple[Band, ...])


def verdicts(results: Results) -> list[Verdict]:
    """Of every band; one whose results are missing is not met."""
    found = []
    for band in bands():
        simulated, published = _numbers(band, results)
        found.append(
            Verdict(
                id=band.id,
                text=band.text,
                low=band.low,
                high=band.high,
                simulated=simulated,
                published=published,
                is_met=band.holds(simulated),
            )
        )
    return found


def published_rows(results: Results) -> list[StageRow]:
    """The rows that stand beside a published one."""
    return [
        row
        for rows in results.values()
        for row in rows
        if not row.is_warm_up and row.published_out_tok_s is not None
    ]


def _numbers(band: Band, results: Results) -> tuple[float | None, float | None]:
    if band.case == "all":
        return overall(published_rows(results), band.measure), None
    if band.case == FOUR_ROUTERS:
        return _four(band.measure, results)
    if band.case == USERS:
        return _users(band.measure, results)
    service, router = results.get((band.case, "service")), results.get((band.case, "router"))
    if not service or not router:
        return None, None
    pair = Pair(service=_without_warm_up(service), router=_without_warm_up(router))
    return measured(pair, band)


def _four(measure: str, results: Results) -> tuple[float | None, float | None]:
    better, _, worse = measure.replace("_to_", "|").partition("|")
    names = {"load": "load-only"}
    better, worse = names.get(better, better), names.get(worse, worse)
    ours = [_output_of(name, results) for name in (better, worse)]
    published = PUBLISHED_FOUR[better] / PUBLISHED_FOUR[worse]
    if ours[0] is None or not ours[1]:
        return None, published
    return ours[0] / ours[1], published


def _output_of(name: str, results: Results) -> float | None:
    """Mean output of the ladder; two of the four are the guide's own runs."""
    keys = {"precise": (GUIDE, "router"), "random": (GUIDE, "service")}
    rows = results.get(keys.get(name, (FOUR_ROUTERS, name)))
    return mean(row.out_tok_s for row in _without_warm_up(rows)) if rows else None


def _users(measure: str, results: Results) -> tuple[float | None, float | None]:
    if measure == "users_ttft_growth":
        routed = results.get((USERS, "router"), ())
        many, few = ttft_at(routed, 250), ttft_at(routed, 20)
        return (None if many is None or not few else many / few), None
    side = measure.removeprefix("users_")
    rows = results.get((USERS, side))
    return (users_served(rows) if rows else None), PUBLISHED_USERS[side]


def _without_warm_up(rows: Sequence[StageRow]) -> tuple[StageRow, ...]:
    return tuple(row for row in rows if not row.is_warm_up)
