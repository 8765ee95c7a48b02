"""Shadow policies: asked on the same state as the live one, without any effect on traffic.

A share of the decisions is also put to the policies that the document names. Their choice is
compared by the price of `consort`: regret is how many seconds dearer it is than the live choice,
negative when it is cheaper. So round robin and llm-d's weighted sum are compared on live traffic,
and a draft is before it is promoted. It is an estimate: the price is ours, and what the shadow's
own earlier choices would have left in the caches is not known.

Their random numbers are their own, so that a shadow never changes what the live policy does.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from routing.core.decision import Refusal, ShadowChoice
from routing.core.document import PoolDocument
from routing.pool.knowledge import Knowledge
from routing.pool.policy import Ask, Policies

GATEWAY = "gateway"
"""Stands for the live policy where somebody else's gateway chooses and this router looks on."""


class Tally(msgspec.Struct):
    """Sums since the router started; a mean is a sum divided by its count."""

    asked: int = 0
    agreed: int = 0
    refused: int = 0
    """Its own filters left nobody."""
    priced: int = 0
    """Choices with a known price, over which the sums run."""
    regret_seconds: float = 0.0
    ttft_seconds: float = 0.0
    """Sum of what its choices were expected to take."""
    live_ttft_seconds: float = 0.0
    """Sum of what the live choices were expected to take, for the same requests."""


class Shadows:
    """See the module. Tallies end with the document that drops their policy, or the live one."""

    def __init__(self, document: PoolDocument, *, seed: int) -> None:
        self._luck = np.random.default_rng([seed % 2**63, 1])
        self._tallies: dict[str, Tally] = {}
        self._document = document
        self._observes = False
        self.live: str = document.policy.name
        """Against whose choices the tallies are."""
        self.is_on = False
        self._rate = 0.0
        self.install(document)

    def observe(self) -> None:
        """From here on the live choices are a gateway's, for good; our own policy is asked too."""
        if not self._observes:
            self._observes = True
            self.install(self._document)

    def install(self, document: PoolDocument) -> None:
        """Ask what this document names from here on."""
        self._document, recording, own = document, document.recording, document.policy.name
        live = GATEWAY if self._observes else own
        if live != self.live:
            # Regret against another live policy is another figure.
            self.live, self._tallies = live, {}
        asked = (own, *recording.shadow_policies) if self._observes else recording.shadow_policies
        names = dict.fromkeys(asked)
        self._tallies = {name: self._tallies.get(name, Tally()) for name in names}
        self._rate = recording.shadow_rate
        self.is_on = bool(names) and self._rate > 0 and not self._observes

    @property
    def tallies(self) -> Mapping[str, Tally]:
        """Per shadow policy."""
        return self._tallies

    def is_due(self) -> bool:
        """Whether this decision is one of the share."""
        return self._rate >= 1 or self._luck.random() < self._rate

    def ask(
        self, policies: Policies, ask: Ask, known: Knowledge, *, live: str, row: int
    ) -> tuple[ShadowChoice, ...]:
        """What each shadow policy would do; `row` is what the live policy `live` chose."""
        return tuple(
            self._ask(name, policies, ask, known, row=row) for name in self._tallies if name != live
        )

    def _ask(
        self, name: str, policies: Policies, ask: Ask, known: Knowledge, *, row: int
    ) -> ShadowChoice:
        terms, ids = ask.priced.terms, known.table.ids
        chosen = policies.choose(name, ask, known, self._luck)
        if isinstance(chosen, Refusal):
            return ShadowChoice(policy=name, destination=None, agrees=False)
        (way, column), (live_way, live_column) = terms.at(chosen.row), terms.at(row)
        return ShadowChoice(
            policy=name,
            destination=ids[chosen.row],
            prefill=None if chosen.prefill < 0 else ids[chosen.prefill],
            agrees=chosen.row == row,
            regret_seconds=float(terms.total[chosen.row] - terms.total[row]),
            ttft_seconds=way.ttft_at(column),
            live_ttft_seconds=live_way.ttft_at(live_column),
        )

    def count(self, choices: Iterable[ShadowChoice]) -> None:
        """Add choices to the tallies, once their request is really sent; tests are not counted."""
        for choice in choices:
            tally = self._tallies.get(choice.policy)
            if tally is None:
                continue
            tally.asked += 1
            tally.agreed += choice.agrees
            tally.refused += choice.destination is None
            seconds = (choice.regret_seconds, choice.ttft_seconds, choice.live_ttft_seconds)
            if all(map(math.isfinite, seconds)):
                tally.priced += 1
                tally.regret_seconds += seconds[0]
                tally.ttft_seconds += seconds[1]
                tally.live_ttft_seconds += seconds[2]

    def describe(self) -> dict[str, Any]:
        """JSON-able sums per policy, for snapshot and metrics."""
        return {name: msgspec.structs.asdict(tally) for name, tally in self._tallies.items()}
