"""Reader of the published tables beside this file.

A table is one run of a ladder: stages in the order in which they were sent, with what the load
generator reported of each. `fit` tables (pools of one accelerator class) may set coefficients,
`judge` tables (mixed pools, and every row that a band is about) never do. `None` was not published.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from routing.simulator.fleet import Member
from routing.simulator.requests import Stage

_FOLDER = Path(__file__).parent
_TABLES = ("nxt_granite.yaml", "nxt_sarvam.yaml", "guide.yaml")

Use = Literal["fit", "judge"]
Router = Literal["service", "llm-d"]


class PublishedError(Exception):
    """A name is not among the published tables."""


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where figures come from."""

    what: str
    where: str
    commit: str | None
    licence: str


class Traffic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a load generator sent; lengths in tokens as the engine sees them."""

    groups: int
    prompts: int
    system_tokens: int
    question_tokens: int
    output_tokens: int
    counted_output_tokens: int
    """Of an answer as the load generator counts it, which published throughput is made of."""
    arrivals: Literal["poisson", "constant"]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A stage. Rates per second, times in seconds."""

    rate_qps: float
    stage_s: float
    sent: int | None
    failed: int | None
    requests_per_s: float | None
    out_tok_s: float | None
    """In tokens as the load generator counts them."""
    ttft_mean_s: float | None
    ttft_p50_s: float | None
    ttft_p90_s: float | None
    tpot_mean_s: float | None
    e2e_mean_s: float | None


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A run."""

    id: str
    """Of the result; a page that shows two routers side by side gives two tables of one id."""
    source: str
    fleet: str
    model: str
    workload: str
    router: Router
    policy: str
    """Ours that stands for it."""
    use: Use
    warm_up_stages: int
    confidence: str
    rows: tuple[Row, ...]

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The ladder, warm-up included."""
        return tuple(
            Stage(
                name=f"{row.rate_qps:g} qps",
                rate_qps=row.rate_qps,
                seconds=row.stage_s,
                is_warm_up=position < self.warm_up_stages,
            )
            for position, row in enumerate(self.rows)
        )


@lru_cache(maxsize=1)
def tables() -> tuple[Table, ...]:
    """All of them, in the order of the files."""
    found: list[Table] = []
    for name in _TABLES:
        data = _read(name)
        found += (_table(entry, data["columns"]) for entry in data["tables"])
    return tuple(found)


def table(result: str, router: Router | None = None) -> Table:
    """One run. Raises PublishedError naming what is known."""
    for one in tables():
        if one.id == result and router in (None, one.router):
            return one
    known = ", ".join(sorted({one.id for one in tables()}))
    raise PublishedError(
        f"No published result '{result}' with router {router}. Known are: {known}."
    )


@lru_cache(maxsize=1)
def sources() -> dict[str, Source]:
    """By id."""
    return msgspec.convert(_read("published.yaml")["sources"], dict[str, Source])


def traffic(workload: str) -> Traffic:
    """Of a workload's id. Raises PublishedError naming what is known."""
    return msgspec.convert(_named("workloads", workload), Traffic)


def members(fleet: str) -> tuple[Member, ...]:
    """Of a fleet's id. Raises PublishedError naming what is known."""
    return msgspec.convert(_named("fleets", fleet), tuple[Member, ...])


def _named(what: str, name: str) -> Any:
    known = _read("published.yaml")[what]
    if name not in known:
        listed = ", ".join(sorted(known))
        raise PublishedError(f"No '{name}' among the published {what}. Known are: {listed}.")
    return known[name]


def _table(entry: dict[str, Any], columns: list[str]) -> Table:
    rows = tuple(_row(dict(zip(columns, row, strict=True))) for row in entry["rows"])
    return msgspec.convert(entry | {"rows": rows}, Table)


def _row(cells: dict[str, Any]) -> Row:
    milliseconds = cells.pop("tpot_mean_ms")
    seconds = None if milliseconds is None else milliseconds / 1000
    return msgspec.convert(cells | {"tpot_mean_s": seconds}, Row)


@lru_cache(maxsize=8)
def _read(name: str) -> dict[str, Any]:
    # Imported here: whoever only simulates does not need it.
    import yaml

    with (_FOLDER / name).open("rb") as file:
        data: dict[str, Any] = yaml.safe_load(file)
    return data
