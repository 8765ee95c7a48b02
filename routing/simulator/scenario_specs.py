"""What a scenario file states; `scenario_file` makes scenarios of it."""

from dataclasses import fields
from typing import Annotated, Any, Literal, get_type_hints

import msgspec

from routing.core.refusals import DocumentError, refusal
from routing.core.specs.admission import Admission
from routing.core.specs.base import Positive, Rate, Seconds, Slug, Strict
from routing.core.specs.endpoints import Role
from routing.core.specs.policies import Policy, PolicyName
from routing.simulator.scenario import Surroundings

Price = Annotated[str, msgspec.Meta(pattern=r"^\d+(\.\d+)?$", max_length=40)]
Speed = Annotated[float, msgspec.Meta(ge=0.001, le=1000)]
Interval = Annotated[float, msgspec.Meta(ge=0.001, le=3600)]
"""Something happens again and again: 0 would be without an end."""
_BOUNDED: dict[Any, Any] = {
    float: Seconds,
    int: Annotated[int, msgspec.Meta(ge=1, le=1000)],
    float | None: Annotated[float, msgspec.Meta(gt=0, le=86_400)] | None,
    "scrape_seconds": Interval,
    "progress_seconds": Interval,
}
"""Of surroundings, by name or else by type."""
Seed = Annotated[int, msgspec.Meta(ge=0, le=2**32)]


class MemberSpec(Strict, frozen=True, kw_only=True):
    """Equal replicas."""

    accelerator: Slug
    count: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 1
    role: Role = "both"
    speed: Speed = 1.0
    """Of its class's; the pool document does not know."""
    max_sequences: Positive = 256
    price_per_hour: Price | None = None
    """Of one replica, in `currency`, as text."""
    watts: Rate | None = None


class PoolSpec(Strict, frozen=True, kw_only=True):
    """A pool document as the fleet."""

    document: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    """Path of the file."""
    accelerators: dict[str, str] = {}
    """Accelerator of a speed class, where its name does not begin with one."""
    speeds: dict[str, Speed] = {}
    """Of endpoints that are not as fast as their class."""


class TroubleSpec(Strict, frozen=True, kw_only=True):
    """See `scenario.Trouble`."""

    at: Seconds
    endpoint: Slug
    kind: Literal["die", "start", "hang", "slow", "lose-events"]
    speed: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 1.0


class TargetsSpec(Strict, frozen=True, kw_only=True):
    """What counts as goodput; the pool document states it, too."""

    ttft_seconds: Rate = 3.0
    tpot_seconds: Rate = 0.08


class ScenarioSpec(Strict, frozen=True, kw_only=True):
    """A whole file."""

    version: Literal[1] = 1
    name: Slug = "scenario"
    model: Slug | None = None
    fleet: Annotated[tuple[MemberSpec, ...], msgspec.Meta(max_length=200)] | None = None
    pool: PoolSpec | None = None
    workload: Any
    """Id of one, or a table: see `workloads.building`."""
    policy: Policy = msgspec.field(default_factory=Policy)
    """Name, and parameters or plugins."""
    policies: Annotated[tuple[PolicyName, ...], msgspec.Meta(max_length=20)] = ()
    """To compare; `()` is that of `policy` alone."""
    seeds: Annotated[tuple[Seed, ...], msgspec.Meta(min_length=1, max_length=100)] = (1,)
    surroundings: dict[str, Any] = {}
    """Fields of `scenario.Surroundings`: see `surroundings_of`."""
    troubles: Annotated[tuple[TroubleSpec, ...], msgspec.Meta(max_length=10_000)] = ()
    slo: TargetsSpec = msgspec.field(default_factory=TargetsSpec)
    admission: Admission | None = None
    """`None` waits without end, as published baselines do."""
    currency: Annotated[str, msgspec.Meta(pattern="^[A-Z]{3}$")] | None = None
    """Of stated prices. Without it list prices stand in for those that are not stated."""


def surroundings_of(stated: dict[str, Any]) -> Surroundings:
    """Those that are stated, the defaults for others. Raises DocumentError."""
    try:
        found = msgspec.convert(stated, _SurroundingsSpec)
    except msgspec.ValidationError as error:
        refused = refusal(str(error), msgspec.json.schema(_SurroundingsSpec))
        pointer = f"/surroundings{refused.pointer}"
        raise DocumentError(pointer, refused.message, refused.allowed) from error
    return Surroundings(**msgspec.structs.asdict(found))


def _bounded(name: str, kind: Any) -> Any:
    return _BOUNDED.get(name) or _BOUNDED.get(kind, kind)


_KINDS = get_type_hints(Surroundings)
# Made from the dataclass, so that a field of it can be stated without being written down twice.
_SurroundingsSpec = msgspec.defstruct(
    "SurroundingsSpec",
    [(one.name, _bounded(one.name, _KINDS[one.name]), one.default) for one in fields(Surroundings)],
    bases=(Strict,),
    frozen=True,
    kw_only=True,
)
