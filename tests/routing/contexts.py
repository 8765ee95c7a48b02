"""Contexts for tests of filters, scorers and pickers: state as lists, one entry per endpoint."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from routing.core.scoring import Context, PrefixMatch
from routing.core.table import EndpointTable, Floats, Instance
from tests.routing.pool.builders import endpoint_dict, make_document, make_request

NOW = 10.0


@dataclass
class StatedMemory:
    """A memory that says what the test states, for every producer."""

    shares: list[float]
    tokens: list[float]
    in_flight: list[float]
    cold: list[float]
    session: int = -1

    def match(self, context: Context, producer: str) -> PrefixMatch:
        return PrefixMatch(share=np.array(self.shares), tokens=np.array(self.tokens))

    def tokens_in_flight(self, table: EndpointTable) -> Floats:
        return np.array(self.in_flight, dtype=np.float64)

    def cold_order(self, table: EndpointTable) -> Floats:
        return np.array(self.cold, dtype=np.float64)

    def session_row(self, context: Context, seconds: float) -> int:
        return self.session


def make_table(count: int, **columns: Any) -> EndpointTable:
    """A table of `count` endpoints, heard of at `NOW`; columns by name, `labels` per endpoint."""
    labels = columns.pop("labels", [{}] * count)
    roles = columns.pop("roles", ["both"] * count)
    document = make_document(
        *(
            endpoint_dict(f"e{row}", labels=labels[row], role=roles[row], max_adapters=None)
            for row in range(count)
        )
    )
    instances = [Instance(spec, row, row) for row, spec in enumerate(document.endpoints)]
    table = EndpointTable(document, instances, now=0.0)
    table.observed_at[:] = NOW
    for name, values in columns.items():
        getattr(table, name)[:] = values
    return table


def make_context(
    count: int = 3, *, rows: list[int] | None = None, request: Any = None, **stated: Any
) -> Context:
    """A context at `NOW`. Keywords: columns of the table, fields of the memory, of the context."""
    memory = StatedMemory(
        shares=stated.pop("shares", [0.0] * count),
        tokens=stated.pop("tokens", [0.0] * count),
        in_flight=stated.pop("in_flight", [0.0] * count),
        cold=stated.pop("cold", [-1.0] * count),
        session=stated.pop("session", -1),
    )
    of_context = {
        name: stated.pop(name)
        for name in ("slo_ttft_seconds", "slo_tpot_seconds", "terms", "indexed_tokens", "now")
        if name in stated
    }
    return Context(
        **{
            "request": request or make_request(),
            "table": make_table(count, **stated),
            "rows": np.arange(count) if rows is None else np.array(rows, dtype=np.intp),
            "output_tokens": 100,
            "now": NOW,
            "rng": np.random.default_rng(1),
            "memory": memory,
        }
        | of_context
    )


class StatedTerms:
    """Predicted latencies as the test states them."""

    def __init__(self, ttft: list[float], tpot: list[float]) -> None:
        self._ttft, self._tpot = ttft, tpot

    def at(self, row: int) -> tuple["StatedTerms", int]:
        return self, row

    def ttft_at(self, row: int) -> float:
        return self._ttft[row]

    def tpot_at(self, row: int) -> float:
        return self._tpot[row]
