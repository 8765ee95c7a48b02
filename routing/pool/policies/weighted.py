"""The policy `weighted`: profiles of filters, scorers and a picker, as llm-d runs them.

A profile keeps the candidates that all its filters keep, adds up its scores (each clamped to 0..1
and times its weight, unknown counting as a half) and lets its picker order the candidates. Without
a picker it is `max-score-picker`. Which profiles run is the handler's business: `deciders`.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from routing.core.document import Plugin, Policy, Profile
from routing.core.lease import Lease
from routing.core.pricing import Rows
from routing.core.refusals import DocumentError
from routing.core.scoring import Context, Filter, Picker, Scorer, weighted_sum
from routing.core.table import EndpointTable, Floats
from routing.pickers.max_score import MaxScorePicker
from routing.pool.policies import deciders, plugins
from routing.pool.policies.base import Ranking
from routing.pool.policies.memory import (
    APPROXIMATE,
    PRECISE,
    ApproximateProducer,
    PolicyMemory,
)
from routing.scorers.no_hit_lru import NoHitLruScorer


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """One profile's outcome: table rows in order, and each scorer's scores of the table's rows."""

    rows: list[int]
    scores: tuple[tuple[str, float, Floats], ...] = ()
    emptied_by: str = ""


class CompiledProfile:
    """A profile with its plugins made, in the document's order within each kind."""

    def __init__(self, profile: Profile, pointer: str) -> None:
        self.filters: list[Filter] = []
        self.scorers: list[tuple[str, float, Scorer]] = []
        pickers: list[Picker] = []
        for place, plugin in enumerate(profile.plugins):
            built = plugins.build(plugin, plugins.IN_PROFILES, f"{pointer}/plugins/{place}")
            if hasattr(built, "keep"):
                self.filters.append(built)
            if hasattr(built, "score"):
                self.scorers.append((plugin.name or plugin.type, plugin.weight, built))
            if hasattr(built, "pick"):
                pickers.append(built)
        if len(pickers) > 1:
            raise DocumentError(
                f"{pointer}/plugins", f"A profile has one picker; this one has {len(pickers)}."
            )
        self._picker: Picker = pickers[0] if pickers else MaxScorePicker()

    def run(self, context: Context, rows: Rows) -> Ran:
        """Filter, score, pick among some rows."""
        context.rows = rows
        for plugin in self.filters:
            if not len(context.rows):
                break
            kept = context.rows[plugin.keep(context)]
            if not len(kept):
                return Ran(rows=[], emptied_by=plugin.type)
            context.rows = kept
        if not len(context.rows):
            return Ran(rows=[])
        scored = [(name, weight, plugin.score(context)) for name, weight, plugin in self.scorers]
        totals = weighted_sum([(weight, score) for _, weight, score in scored], len(context.rows))
        order = self._picker.pick(totals, context.rng)
        return Ran(
            rows=context.rows[order].tolist(),
            scores=tuple((name, weight, _spread(context, score)) for name, weight, score in scored),
        )


def _spread(context: Context, score: Floats) -> Floats:
    """Scores of the candidates as a column of the table."""
    column: Floats = np.full(len(context.table), np.nan)
    column[context.rows] = score
    return column


class WeightedPolicy:
    """See the module. Raises DocumentError at construction for anything it cannot run."""

    def __init__(self, policy: Policy, *, pointer: str = "/policy") -> None:
        outside = _named(policy.plugins, f"{pointer}/plugins")
        profiles: dict[str, CompiledProfile] = {
            profile.name: CompiledProfile(profile, f"{pointer}/profiles/{place}")
            for place, profile in enumerate(policy.profiles)
        }
        if len(profiles) < len(policy.profiles) or not profiles:
            word = (
                "Two profiles have one name." if profiles else "A weighted policy needs profiles."
            )
            raise DocumentError(f"{pointer}/profiles", word, ("default", "prefill", "decode"))
        self._choose_profiles(outside, profiles, policy, pointer)
        wanted = _wanted_producers(policy, outside, pointer)
        approximate = {
            name: built for name, built in outside.items() if isinstance(built, ApproximateProducer)
        }
        stated = [name for name, built in outside.items() if built == PRECISE]
        default = next(iter([*approximate, *stated]), APPROXIMATE)
        if APPROXIMATE in wanted | {default}:
            approximate.setdefault(APPROXIMATE, ApproximateProducer())
        self._memory = PolicyMemory(
            approximate, default=default, lru_size=_lru_size(profiles.values())
        )

    def _choose_profiles(
        self,
        outside: dict[str, Any],
        profiles: dict[str, CompiledProfile],
        policy: Policy,
        pointer: str,
    ) -> None:
        handlers = [built for built in outside.values() if isinstance(built, deciders.HANDLERS)]
        if len(handlers) > 1:
            raise DocumentError(f"{pointer}/plugins", "A policy has one profile handler.")
        self._prefill: CompiledProfile | None = None
        self._decider: deciders.Decider | None = None
        self._is_prefill_first = False
        handler = handlers[0] if handlers else None
        if not isinstance(handler, deciders.DisaggProfileHandler):
            if len(profiles) > 1:
                raise DocumentError(
                    f"{pointer}/profiles",
                    "Several profiles need a disagg-profile-handler among policy.plugins.",
                )
            self._answer = next(iter(profiles.values()))
            return
        stages = handler.profiles
        for stage, name in (("decode", stages.decode), ("prefill", stages.prefill)):
            if name not in profiles and (stage == "decode" or handler.deciders.prefill):
                raise DocumentError(
                    f"{pointer}/profiles",
                    f"The profile '{name}' of the handler's stage {stage} does not exist.",
                    tuple(sorted(profiles)),
                )
        self._answer = profiles[stages.decode]
        self._prefill = profiles.get(stages.prefill)
        self._is_prefill_first = handler.stage_order == "prefill-first"
        if handler.deciders.prefill:
            decider = outside.get(handler.deciders.prefill)
            if not isinstance(decider, deciders.Decider):
                raise DocumentError(
                    f"{pointer}/plugins",
                    f"The decider '{handler.deciders.prefill}' is not among policy.plugins.",
                    tuple(name for name, built in outside.items() if hasattr(built, "wants_pair")),
                )
            self._decider = decider

    @property
    def memory(self) -> PolicyMemory:
        """See PeerPolicy."""
        return self._memory

    def choose(self, context: Context) -> Ranking:
        """See PeerPolicy."""
        answers = context.rows
        if self._is_prefill_first and self._decider is not None and self._prefill is not None:
            return self._prefill_first(context, answers)
        ran = self._answer.run(context, answers)
        prefill = -1
        if ran.rows and self._wants_pair(context, ran.rows[0]):
            prefill = self._prefill_for(context, context.prefills_of(ran.rows[0]))
        return _ranking(ran, prefill)

    def _prefill_first(self, context: Context, answers: Rows) -> Ranking:
        """The prefill endpoint first; then a destination that can pull from it, if it is wanted."""
        able = {int(row): set(context.prefills_of(int(row))) for row in answers}
        prefill = self._prefill_for(context, sorted(set().union(*able.values())))
        partners = [row for row, sources in able.items() if prefill in sources]
        if partners:
            ran = self._answer.run(context, np.array(partners, dtype=np.intp))
            if ran.rows and self._wants_pair(context, ran.rows[0]):
                return _ranking(ran, prefill)
        return _ranking(self._answer.run(context, answers), -1)

    def _prefill_for(self, context: Context, able: Sequence[int]) -> int:
        if not able or self._prefill is None:
            return -1
        found = self._prefill.run(context, np.array(able, dtype=np.intp)).rows
        return found[0] if found else -1

    def _wants_pair(self, context: Context, destination: int) -> bool:
        if self._decider is None:
            return False
        cached = float(self._memory.match(context, "").tokens[destination])
        return self._decider.wants_pair(prompt_tokens=context.prompt_tokens, cached_tokens=cached)

    def began(self, lease: Lease, table: EndpointTable, *, now: float) -> None:
        """See PeerPolicy."""
        self._memory.began(lease, table, now=now)

    def ended(self, lease: Lease) -> None:
        """See PeerPolicy."""
        self._memory.ended(lease)

    def forget(self) -> None:
        """See PeerPolicy."""
        self._memory.forget()


def _ranking(ran: Ran, prefill: int) -> Ranking:
    return Ranking(rows=ran.rows, prefill=prefill, scores=ran.scores, emptied_by=ran.emptied_by)


def _named(entries: Sequence[Plugin], pointer: str) -> dict[str, Any]:
    """What stands outside of profiles, by name; types without parameters here map to their type."""
    found: dict[str, Any] = {}
    for place, plugin in enumerate(entries):
        name = plugin.name or plugin.type
        if name in found:
            raise DocumentError(f"{pointer}/{place}/name", f"Two plugins are called '{name}'.")
        built = plugins.build(plugin, plugins.OUTSIDE | plugins.INERT, f"{pointer}/{place}")
        found[name] = plugin.type if plugin.type in plugins.INERT else built
    return found


def _lru_size(profiles: Any) -> int:
    sizes = [
        plugin.lru_size
        for profile in profiles
        for _, _, plugin in profile.scorers
        if isinstance(plugin, NoHitLruScorer)
    ]
    return max(sizes, default=0)


def _wanted_producers(policy: Policy, outside: dict[str, Any], pointer: str) -> set[str]:
    """Producers that scorers name. Raises DocumentError for one that does not exist."""
    allowed = {APPROXIMATE, PRECISE} | {
        name
        for name, built in outside.items()
        if isinstance(built, ApproximateProducer) or built == PRECISE
    }
    found = set()
    for place, profile in enumerate(policy.profiles):
        for position, plugin in enumerate(profile.plugins):
            name = plugin.parameters.get("prefixMatchInfoProducerName", "")
            if name and name not in allowed:
                raise DocumentError(
                    f"{pointer}/profiles/{place}/plugins/{position}"
                    "/parameters/prefixMatchInfoProducerName",
                    f"No producer is called '{name}'.",
                    tuple(sorted(allowed)),
                )
            found.add(name)
    return found - {""}
