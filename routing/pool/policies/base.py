"""The protocol of a peer's policy, and how a prefill endpoint is found for its destination."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from routing.core.lease import Lease
from routing.core.scoring import Context, Memory
from routing.core.table import EndpointTable, Floats


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """Table rows that may answer, best first; empty when the policy's own filters left nobody."""

    rows: Sequence[int]
    prefill: int = -1
    """Row that computes the prompt; -1 is the destination itself."""
    reason: str = ""
    scores: tuple[tuple[str, float, Floats], ...] = ()
    """Scorer, its weight and its scores over the table's rows; NaN where it was not asked."""
    emptied_by: str = ""
    """Filter that left nobody."""


class PeerPolicy(Protocol):
    """State is per router and policy, and bounded; it is told of every request that begins."""

    @property
    def memory(self) -> Memory:
        """What plugins may ask it about the past."""

    def choose(self, context: Context) -> Ranking:
        """Order the candidates, never naming one that is not among `context.rows`."""

    def began(self, lease: Lease, table: EndpointTable, *, now: float) -> None:
        """A request was sent, by this policy's choice or, for a shadow, by another's."""

    def ended(self, lease: Lease) -> None:
        """It is over, whatever the outcome."""

    def forget(self) -> None:
        """Back to an empty memory."""
