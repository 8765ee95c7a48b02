"""KV tokens that this router's pairs have still to move, at both ends of each transfer.

A link moves one prompt after the other, so what is ahead at the busier end is a wait. It is in the
price of a pair, and taken out of what a transfer teaches about the link itself.
"""

from dataclasses import dataclass

from routing.core.lease import Lease
from routing.core.table import EndpointTable, Instance


@dataclass(slots=True)
class _Move:
    source: Instance
    destination: Instance
    tokens: float
    ahead: float = 0.0
    """Of others, at the busier end, when the prompt was ready."""
    is_ready: bool = False


class LinkLoads:
    """Fills `outgoing_tokens` and `incoming_tokens`; a move ends once, whatever ends its lease."""

    def __init__(self) -> None:
        self._moves: dict[int, _Move] = {}
        self._on_wire: dict[Instance, float] = {}
        """Tokens of prompts that are computed, by either end."""

    def begin(self, table: EndpointTable, lease: Lease) -> None:
        """A request was sent to a pair; one without a prefill endpoint moves nothing."""
        if lease.prefill is None:
            return
        held = lease.decision.predicted.destination_hit_tokens
        missing = max(0, lease.request.parsed.prompt_tokens - held)
        move = _Move(lease.prefill, lease.destination, float(missing))
        self._moves[lease.number] = move
        _count(table, move, move.tokens)

    def ready(self, lease: Lease) -> None:
        """Its prompt is computed: the transfer begins when those before it are over."""
        move = self._moves.get(lease.number)
        if move is None or move.is_ready:
            return
        wire = self._on_wire
        move.is_ready = True
        move.ahead = max(wire.get(move.source, 0.0), wire.get(move.destination, 0.0))
        for end in (move.source, move.destination):
            wire[end] = wire.get(end, 0.0) + move.tokens

    def end(self, table: EndpointTable, lease: Lease) -> float:
        """The KV arrived, or never will; tokens that were ahead of it on the wire."""
        move = self._moves.pop(lease.number, None)
        if move is None:
            return 0.0
        _count(table, move, -move.tokens)
        if move.is_ready:
            for end in (move.source, move.destination):
                # A move of nothing has no part in what is left.
                left = self._on_wire.pop(end, 0.0) - move.tokens
                if left > 0:
                    self._on_wire[end] = left
        return move.ahead


def _count(table: EndpointTable, move: _Move, tokens: float) -> None:
    if move.source.is_alive:
        table.outgoing_tokens[move.source.row] += tokens
    if move.destination.is_alive:
        table.incoming_tokens[move.destination.row] += tokens
