"""Which accelerators serve which model, when several models share a fleet.

Whole units (nodes, or engines when there are fewer nodes than models) go one after the other to the
model that is worst served, from the group that serves it best compared with the others; then single
units move or change places as long as the worst-served model gains. The measure is the bound of
`estimate` with every engine at both phases.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from routing.planner.engines import Engine, Refusal, engine_of, widths_of
from routing.planner.estimate import engine_bound
from routing.planner.placement import Placement, Share
from routing.planner.problem import Demand, Group, Problem

MOST_ROUNDS = 400
LEAST_GAIN = 1e-3
WIDER_GAIN = 0.25
"""What an engine of more accelerators must serve more per accelerator: its speed is an estimate,
and change plans start engines of one accelerator."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A model on a group: its engine and what one accelerator of it can do."""

    engine: Engine
    per_accelerator_rps: float


@dataclass(slots=True)
class Shared:
    """Accelerators by pool and group, and what cannot run where."""

    placements: dict[str, Placement]
    fits: dict[tuple[str, str], Fit]
    """By pool and group."""
    refusals: dict[tuple[str, str], Refusal] = field(default_factory=dict)


def fits_of(problem: Problem) -> tuple[dict[tuple[str, str], Fit],
                                       dict[tuple[str, str], Refusal]]:  # fmt: skip
    """Every model on every group, at its width there."""
    fits: dict[tuple[str, str], Fit] = {}
    refusals: dict[tuple[str, str], Refusal] = {}
    for demand in problem.demands:
        for group in problem.groups:
            found = _best(group, demand)
            if isinstance(found, Fit):
                fits[demand.name, group.name] = found
            else:
                refusals[demand.name, group.name] = found
    return fits, refusals


def share_out(problem: Problem) -> Shared:
    """Give every unit that some model can use to a pool."""
    fits, refusals = fits_of(problem)
    if len(problem.demands) == 1:
        held = {problem.demands[0].name: {group.name: group.accelerators
                                          for group in problem.groups}}  # fmt: skip
    else:
        held = _Auction(problem, fits).run()
    placements = {
        demand.name: _placement(held[demand.name], problem.groups, fits, demand.name)
        for demand in problem.demands
    }
    return Shared(placements, fits, refusals)


def _best(group: Group, demand: Demand) -> Fit | Refusal:
    refusal: Refusal | None = None
    best: Fit | None = None
    for width in widths_of(group):
        engine = engine_of(group, demand, width)
        if isinstance(engine, Refusal):
            refusal = engine
            continue
        rate = engine_bound(engine, "both", demand) / width
        if best is None or rate > best.per_accelerator_rps * (1 + WIDER_GAIN):
            best = Fit(engine, rate)
    return best or refusal or Refusal("memory", demand.model)


def _placement(
    held: Mapping[str, int],
    groups: Sequence[Group],
    fits: Mapping[tuple[str, str], Fit],
    pool: str,
) -> Placement:
    shares = []
    for group in groups:
        fit = fits.get((pool, group.name))
        engines = held.get(group.name, 0) // fit.engine.width if fit else 0
        if fit and engines:
            shares.append(Share(group=group.name, width=fit.engine.width, both=engines))
    return tuple(shares)


class _Auction:
    """Units of groups among pools."""

    def __init__(self, problem: Problem, fits: Mapping[tuple[str, str], Fit]) -> None:
        self._pools = [demand.name for demand in problem.demands]
        self._rates = {demand.name: demand.traffic.rate_qps for demand in problem.demands}
        self._groups = {group.name: group for group in problem.groups}
        self._fits = fits
        self._unit = {name: self._unit_of(group) for name, group in self._groups.items()}
        self._free = {
            name: group.accelerators // self._unit[name] for name, group in self._groups.items()
        }
        self._held = {pool: dict.fromkeys(self._groups, 0) for pool in self._pools}

    def run(self) -> dict[str, dict[str, int]]:
        """Accelerators by pool and group."""
        while self._give():
            pass
        for _ in range(MOST_ROUNDS):
            if not self._improve():
                break
        return {
            pool: {name: units * self._unit[name] for name, units in held.items()}
            for pool, held in self._held.items()
        }

    def _unit_of(self, group: Group) -> int:
        if group.nodes >= len(self._pools):
            return group.accelerators_per_node
        widths = [fit.engine.width for (_, name), fit in self._fits.items() if name == group.name]
        return max(widths, default=1)

    def _gain(self, pool: str, group: str) -> float:
        """Share of the pool's rate that one unit serves; 0 when the model does not run there."""
        fit = self._fits.get((pool, group))
        rate = fit.per_accelerator_rps * self._unit[group] if fit else 0.0
        return rate / self._rates[pool]

    def _served(self, pool: str) -> float:
        return sum(
            units * self._gain(pool, name) for name, units in self._held[pool].items() if units
        )

    def _give(self) -> bool:
        for pool in sorted(self._pools, key=lambda name: (self._served(name), name)):
            choices = [name for name, left in self._free.items()
                       if left and self._gain(pool, name) > 0]  # fmt: skip
            if choices:
                chosen = max(choices, key=lambda name: self._advantage(pool, name))
                self._free[chosen] -= 1
                self._held[pool][chosen] += 1
                return True
        return False

    def _advantage(self, pool: str, group: str) -> float:
        """What the unit is worth here over what it would be worth elsewhere."""
        elsewhere = max(
            (self._gain(other, group) for other in self._pools if other != pool), default=0.0
        )
        own = self._gain(pool, group)
        return own / elsewhere if elsewhere else own * 1e6

    def _improve(self) -> bool:
        """One move or exchange that helps the worst served; false when none does."""
        worst = min(self._pools, key=lambda name: (self._served(name), name))
        before = self._served(worst)
        best, best_score = None, before * (1 + LEAST_GAIN)
        for donor in self._pools:
            if donor == worst:
                continue
            for given in self._groups:
                for back in (None, *self._groups):
                    score = self._score(worst, donor, given, back)
                    if score is not None and score > best_score:
                        best, best_score = (donor, given, back), score
        if best is None:
            return False
        self._move(worst, *best)
        return True

    def _score(self, worst: str, donor: str, given: str, back: str | None) -> float | None:
        """The lower of the two after the move; `None` when there is nothing to move."""
        if not self._held[donor][given] or given == back:
            return None
        if back is not None and not self._held[worst][back]:
            return None
        ours = self._served(worst) + self._gain(worst, given)
        theirs = self._served(donor) - self._gain(donor, given)
        if back is not None:
            ours -= self._gain(worst, back)
            theirs += self._gain(donor, back)
        return min(ours, theirs)

    def _move(self, worst: str, donor: str, given: str, back: str | None) -> None:
        self._held[donor][given] -= 1
        self._held[worst][given] += 1
        if back is not None:
            self._held[worst][back] -= 1
            self._held[donor][back] += 1
