"""Another destination for a prompt that is computed already.

The decode endpoint of a pair refused before it began, so the prefill endpoint still keeps the
blocks. Hard filters hold as before: only fallbacks of the first decision take part, and the path
to them is as short or as long as the first one was: a request whose KV stayed in one jurisdiction
keeps it there.
"""

import msgspec

from routing.core.decision import Decision, Predicted
from routing.core.table import EndpointTable
from routing.pool.knowledge import Knowledge
from routing.producers.breakers import CLOSED

REASON = "its prompt is computed already"
SERVED = "the gateway's fallback"


def hand_on(
    known: Knowledge, decision: Decision, *, exclude: frozenset[str], now: float
) -> Decision | None:
    """The decision with the next usable fallback as its destination; `None` if there is none."""
    table = known.table
    prefill = table.row_of.get(decision.prefill or "")
    if prefill is None or decision.destination is None or not table.is_prefill[prefill]:
        return None
    before = table.row_of.get(decision.destination)
    one_place = before is None or _same_place(table, prefill, before)
    names = [name for name in decision.fallbacks if name not in exclude]
    for position, name in enumerate(names):
        row = table.row_of.get(name)
        if row is None or not table.is_ready[row] or table.open_until[row] != CLOSED:
            continue
        able = known.pairs.prefill_rows_for(row, table.is_prefill, one_place=one_place, now=now)
        if prefill in able:
            return _handed_on(decision, name, tuple(names[position + 1 :]))
    return None


def served_by(decision: Decision, endpoint_id: str) -> Decision:
    """The decision as a gateway carried it out: at another endpoint, which computes all there.

    It keeps its id, by which clients ask for it: its record is told how the request ended.
    """
    before = decision.predicted
    return msgspec.structs.replace(
        decision,
        destination=endpoint_id,
        fallbacks=(),
        prefill=None,
        predicted=Predicted(
            uncached_tokens=before.hit_tokens + before.uncached_tokens,
            output_tokens=before.output_tokens,
        ),
        margin_seconds=None,
        runner_up=None,
        reason=SERVED,
        inputs=None,
        candidates=None,
        shadows=(),
    )


def _same_place(table: EndpointTable, first: int, second: int) -> bool:
    return (
        table.jurisdictions[first] is not None
        and table.jurisdictions[first] == table.jurisdictions[second]
    )


def _handed_on(decision: Decision, destination: str, fallbacks: tuple[str, ...]) -> Decision:
    """Nothing is left to compute, and what the first destination was to need is not known here."""
    before = decision.predicted
    return msgspec.structs.replace(
        decision,
        id=f"{decision.id}-handed-on",
        destination=destination,
        fallbacks=fallbacks,
        predicted=Predicted(
            hit_tokens=before.hit_tokens,
            indexed_tokens=before.indexed_tokens,
            output_tokens=before.output_tokens,
        ),
        margin_seconds=None,
        runner_up=None,
        reason=REASON,
        inputs=None,
        candidates=None,
        shadows=(),
    )
