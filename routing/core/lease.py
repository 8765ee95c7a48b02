"""A lease: one request occupies one instance, or two when its prompt is computed elsewhere."""

from dataclasses import dataclass, field

from routing.core.decision import Decision
from routing.core.request import InferenceRequest
from routing.core.table import EndpointTable, Instance


@dataclass(slots=True, eq=False)
class Holding:
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
                getattr(table, name)[self.instance.row] -= part

    def _apply(self, table: EndpointTable, *, sign: int, now: float) -> None:
        row = self.instance.row
        if row < 0:
            return
        table.integrate(row, now)
        for name, amount in self.amounts.items():
            getattr(table, name)[row] += sign * amount


@dataclass(slots=True, eq=False)
class Lease:
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
    is_open: bool = True
    at_begin: dict[str, float] = field(default_factory=dict)
    """Load found at the start; speeds are learned against it."""
    at_first_token: dict[str, float] = field(default_factory=dict)
    """Time integrals of the destination when its first token came."""

    @property
    def prompt_instance(self) -> Instance:
        """The instance that computes the prompt."""
        return self.prefill or self.destination
