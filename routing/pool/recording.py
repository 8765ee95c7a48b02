"""What a replay needs of the moment of a decision: the columns that its price read, unrounded.

Kept for the endpoints that the record lists and for those that may compute prompts for them, so the
size does not grow with the pool. No prompt text and no block keys: the hits stand for them.
"""

import math
from typing import Any, Literal, Protocol

import numpy as np

from routing.core.pricing import Demand
from routing.core.record import MOST_CANDIDATES
from routing.core.table import PRICED, Floats
from routing.pool.eligibility import Eligibility
from routing.pool.knowledge import Hits, Knowledge
from routing.pool.objective import Priced

Keep = Literal["always", "refusals"] | None
MOST_PAIRS = 256
"""Pairs whose learned cost or breaker is kept; the others count as never used."""


class Moment(Protocol):
    """What is known of a decision when it is made."""

    now: float
    exclude: frozenset[str]
    eligible: Eligibility | None
    priced: Priced | None
    hits: Hits | None
    demand: Demand | None
    luck: str | None


def luck(rng: np.random.Generator) -> str:
    """Where a generator stands, as text; `lucky` makes one that goes on from there."""
    state = rng.bit_generator.state
    inner = state["state"]
    return f"pcg64:{inner['state']:x}:{inner['inc']:x}:{state['has_uint32']}:{state['uinteger']}"


def lucky(text: str) -> np.random.Generator | None:
    """The generator that stood there; `None` when the text is not one of `luck`."""
    name, _, rest = text.partition(":")
    parts = rest.split(":")
    if name != "pcg64" or len(parts) != 4:
        return None
    try:
        state, inc = int(parts[0], 16) % 2**128, int(parts[1], 16) % 2**128
        has_uint32, uinteger = int(parts[2]) % 2, int(parts[3]) % 2**32
    except ValueError:
        return None
    bits = np.random.PCG64(0)
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": state, "inc": inc | 1},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
    return np.random.Generator(bits)


def inputs_of(known: Knowledge, moment: Moment, *, destination: str | None) -> dict[str, Any]:
    """Everything that a replay of this decision reads, JSON-able."""
    table, demand = known.table, moment.demand
    rows = _rows(known, moment, destination=destination)
    return {
        "endpoints": [table.ids[row] for row in rows],
        "instances": [table.instances[row].spec.instance for row in rows],
        "columns": {name: _exact(getattr(table, name), rows) for name in PRICED},
        "hits": _hits(moment.hits, rows),
        "output_tokens": None if demand is None else demand.output_tokens,
        "homes": [] if demand is None else [table.ids[row] for row in demand.homes],
        "shared_tokens": 0.0 if demand is None else demand.shared_tokens,
        "doubt": 0.0 if demand is None else demand.doubt,
        "pairs": _pairs(known, set(rows)),
        "cold": [table.ids[row] for row in known.pairs.decode_rows[known.pairs.is_cold]],
        "degraded": {
            table.ids[row]: list(words)
            for row in rows
            if table.answers[row] and (words := known.degraded(row, now=moment.now))
        },
        "excluded": sorted(moment.exclude),
        "luck": moment.luck,
    }


def _rows(known: Knowledge, moment: Moment, *, destination: str | None) -> list[int]:
    """Candidates that are listed, their prefill endpoints, and what breakers keep out."""
    table, priced = known.table, moment.priced
    if priced is None:
        return list(range(min(len(table), MOST_CANDIDATES)))
    ranked = priced.rows[np.argsort(priced.terms.total[priced.rows], kind="stable")]
    kept = dict.fromkeys(ranked[:MOST_CANDIDATES].tolist())
    if destination is not None:
        kept[table.row_of[destination]] = None
    sources = [source for row in kept if (source := priced.terms.prefill_at(int(row))) >= 0]
    kept |= dict.fromkeys(sources)
    eligible = moment.eligible
    prefills = [] if eligible is None else np.flatnonzero(eligible.prefills).tolist()
    broken = np.flatnonzero(table.open_until > -np.inf).tolist()
    for row in (*prefills, *broken):
        if len(kept) < 2 * MOST_CANDIDATES:
            kept[row] = None
    return sorted(int(row) for row in kept)


def _hits(hits: Hits | None, rows: list[int]) -> dict[str, Any] | None:
    if hits is None:
        return None
    columns = {name: getattr(hits, name) for name in Hits.__struct_fields__}
    return {
        name: None if column is None else _exact(column, rows) for name, column in columns.items()
    }


def _pairs(known: Knowledge, rows: set[int]) -> list[dict[str, Any]]:
    pairs, ids = known.pairs, known.table.ids
    told = (pairs.scale != 1.0) | (pairs.open_until > -np.inf) | pairs.is_full
    found: list[dict[str, Any]] = []
    for line, column in np.argwhere(told):
        ends = int(pairs.prefill_rows[line]), int(pairs.decode_rows[column])
        if ends[0] in rows and ends[1] in rows and len(found) < MOST_PAIRS:
            found.append(
                {
                    "prefill": ids[ends[0]],
                    "decode": ids[ends[1]],
                    "scale": float(pairs.scale[line, column]),
                    "open_until": finite(pairs.open_until[line, column]),
                    "is_full": bool(pairs.is_full[line, column]),
                }
            )
    return found


def _exact(column: Floats, rows: list[int]) -> list[float | None]:
    return [finite(value) for value in column[rows].tolist()]


def finite(value: float) -> float | None:
    """JSON knows no NaN and no infinity."""
    return float(value) if math.isfinite(value) else None
