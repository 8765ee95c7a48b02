"""A lease: one request occupies one instance, or two when its prompt is computed elsewhere."""

import msgspec

from routing.core.decision import Decision
from routing.core.request import InferenceRequest
from routing.core.table import EndpointTable, Instance


class Holding(msgspec.Struct, eq=False):
    """What a lease added to some columns of one instance; taken back exactly once."""

    instance: Instance
    amounts: dict[str, int]
    is_held: bool = False

    def take(self, table: EndpointTable, *, now: float) -> None:
        """Add the amounts. Only the lease book calls this, once."""
        self._apply(table, sign=1, now=now)
        self.is_held = True

    def release(self, table: EndpointTable, *, now: float) -> None:
        """Subtract what was added; again, or after the instance died, it does nothing."""
        if self.is_held:
            self.is_held = False
            self._apply(table, sign=-1, now=now)

    def reduce(self, table: EndpointTable, name: str, by: int) -> None:
        """Give back a part early, never more than is held."""
        part = min(by, self.amounts.get(name, 0))
        if self.is_held and part > 0:
            self.amounts[name] -= part
            if self.instance.is_alive:
                table.cells[name][self.instance.row] -= part

    def extend(self, table: EndpointTable, name: str, by: int) -> None:
        """Hold more of a column than was taken at first."""
        if self.is_held and by > 0:
            self.amounts[name] = self.amounts.get(name, 0) + by
            if self.instance.is_alive:
                table.cells[name][self.instance.row] += by

    def _apply(self, table: EndpointTable, *, sign: int, now: float) -> None:
        row = self.instance.row
        if row < 0:
            return
        table.integrate(row, now)
        cells = table.cells
        for name, amount in self.amounts.items():
            cells[name][row] += sign * amount


class Lease(msgspec.Struct, eq=False):
    """Ends exactly once; ending twice is harmless; never expires by time alone."""

    number: int
    request: InferenceRequest
    decision: Decision
    destination: Instance
    prefill: Instance | None
    began_at: float
    work_tokens: int
    """Prompt tokens that the endpoint computing the prompt was expected to compute."""
    output_tokens: int
    """Expected output."""
    holdings: tuple[Holding, ...] = ()
    prefill_done_at: float | None = None
    first_token_at: float | None = None
    stretch_at: float | None = None
    """When the stretch of output began from which a speed is learned next."""
    stretch_tokens: int = 0
    """Output that came since."""
    output_seen: int = 0
    """Output that came at all."""
    outlived: int = 0
    """How often it was longer than expected."""
    is_open: bool = True
    is_unseen: bool = False
    """Its answer passes elsewhere: nobody tells of its first token or its end."""
    at_begin: dict[str, float] = msgspec.field(default_factory=dict)
    """Load found at the start; speeds are learned against it."""
    at_first_token: dict[str, float] = msgspec.field(default_factory=dict)
    """Time integrals of the destination when that stretch began; with the first token at first."""

    @property
    def prompt_instance(self) -> Instance:
        """The instance that computes the prompt."""
        return self.prefill or self.destination

    def used_tokens(
        self, *, is_answered: bool, prompt_tokens: int | None, completion_tokens: int | None
    ) -> int:
        """What the request cost: the engine's counts, else what was seen of it."""
        prompt = self.request.parsed.prompt_tokens if prompt_tokens is None else prompt_tokens
        if completion_tokens is not None:
            return prompt + completion_tokens
        if is_answered:
            return prompt + self.output_tokens
        if self.first_token_at is None:
            return 0
        return prompt + self.output_tokens - self.holdings[0].amounts.get("remaining_tokens", 0)
