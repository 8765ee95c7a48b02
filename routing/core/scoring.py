"""What filters, scorers and pickers of the weighted policy see, and the arithmetic they share.

A plugin is a frozen struct of its parameters, named as llm-d names them, with one of three methods:
a filter's `keep`, a scorer's `score`, a picker's `pick`. All are functions of the context; what has
to be remembered between requests is in `Memory`, which they only read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

import msgspec
import numpy as np

from routing.core.pricing import BestTerms, Rows
from routing.core.request import InferenceRequest
from routing.core.table import EndpointTable, Flags, Floats

UNKNOWN_SCORE: Final = 0.5
"""What a score that nobody knows counts as: neither idle nor saturated."""
READING_SECONDS: Final = 2.0
"""Readings of an engine that are older are unknown (llm-d's `--metrics-staleness-threshold`)."""


class PluginParameters(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """Base of every plugin: fields are its parameters in camel case, others are refused."""


class PrefixMatch(msgspec.Struct, frozen=True, kw_only=True):
    """What a producer believes of a prompt's longest unbroken prefix; arrays over table rows."""

    share: Floats
    """Matched blocks of all the prompt's blocks, 0 to 1; 0 for a prompt below one block."""
    tokens: Floats
    """Matched tokens."""


class Memory(Protocol):
    """What one policy remembers of the requests before; see `routing.pool.policies.memory`."""

    def match(self, context: "Context", producer: str) -> PrefixMatch:
        """The prompt in a producer plugin's index, by its name; "" is the policy's default."""

    def tokens_in_flight(self, table: EndpointTable) -> Floats:
        """Prompt tokens of open requests that were expected not to be cached, per row."""

    def cold_order(self, table: EndpointTable) -> Floats:
        """When each row last took a prompt that nobody had cached: a rank, -1 for never."""

    def session_row(self, context: "Context", seconds: float) -> int:
        """Row that had the session's last request at most so long ago; -1 when none did."""


@dataclass(slots=True, kw_only=True)
class Context:
    """One request at one moment. `rows` shrinks while filters run."""

    request: InferenceRequest
    table: EndpointTable
    rows: Rows
    """Table rows that are candidates."""
    output_tokens: int
    now: float
    rng: np.random.Generator
    memory: Memory
    terms: BestTerms | None = None
    """Our own price, from which predicted latencies are read."""
    slo_ttft_seconds: float = 0.0
    slo_tpot_seconds: float = 0.0
    """Targets of the request, else of the pool; 0 when nobody set one."""
    indexed_tokens: Floats | None = None
    """Prompt tokens in each row's cache by the router's own index, exact where events say it."""
    is_exact: Flags | None = None
    """Rows whose `indexed_tokens` come from the engine's events; `None` when none do."""
    prefills_of: Callable[[int], Sequence[int]] = lambda row: ()
    """Rows that may compute the prompt for a destination."""

    @property
    def prompt_tokens(self) -> int:
        return self.request.parsed.prompt_tokens

    def reading(self, column: Floats) -> Floats:
        """An engine's signal at the candidates; NaN where it is too old or was never there."""
        age = self.now - self.table.observed_at[self.rows]
        found: Floats = np.where(age <= READING_SECONDS, column[self.rows], np.nan)
        return found

    def matched_share(self, producer: str = "") -> Floats:
        """Matched share of the prompt at the candidates."""
        found: Floats = self.memory.match(self, producer).share[self.rows]
        return found

    def matched_tokens(self, producer: str = "") -> Floats:
        """Matched tokens of the prompt at the candidates."""
        found: Floats = self.memory.match(self, producer).tokens[self.rows]
        return found

    def token_load(self) -> Floats:
        """Uncached tokens in flight at the candidates, with this prompt on top."""
        waiting = self.memory.tokens_in_flight(self.table)[self.rows]
        load: Floats = waiting + self.prompt_tokens * (1.0 - self.matched_share())
        return load

    def latencies(self) -> tuple[Floats, Floats]:
        """Predicted TTFT and TPOT at the candidates, in seconds; NaN without a price."""
        if self.terms is None:
            unknown = np.full(len(self.rows), np.nan)
            return unknown, unknown
        ways = [self.terms.at(int(row)) for row in self.rows]
        ttft = np.array([way.ttft_at(column) for way, column in ways], dtype=np.float64)
        tpot = np.array([way.tpot_at(column) for way, column in ways], dtype=np.float64)
        return ttft, tpot

    def headroom(self) -> tuple[Floats, Floats]:
        """Target minus prediction, for TTFT and TPOT; a target that nobody set counts as 0 s."""
        ttft, tpot = self.latencies()
        return self.slo_ttft_seconds - ttft, self.slo_tpot_seconds - tpot


class Filter(Protocol):
    """Removes candidates. Unknown is in: only the hard filters treat it as out."""

    type: ClassVar[str]

    def keep(self, context: Context) -> Flags:
        """True for each candidate that stays, in the order of `context.rows`."""


class Scorer(Protocol):
    """Rates candidates."""

    type: ClassVar[str]

    def score(self, context: Context) -> Floats:
        """0 to 1 for each candidate; NaN where the signal is unknown."""


class Picker(Protocol):
    """Orders candidates by their weighted sums."""

    type: ClassVar[str]

    def pick(self, totals: Floats, rng: np.random.Generator) -> list[int]:
        """All positions, the one to use first, then the fallbacks."""


PluginType = type[Any]
"""A struct of parameters with one or more of the three methods."""


def falling(values: Floats) -> Floats:
    """1 for the least, 0 for the most, linear between; equal values give 1, NaN stays NaN.

    Min-max normalisation across the candidates of one decision, as llm-d documents it.
    """
    least = float(np.fmin.reduce(values, initial=np.inf))
    most = float(np.fmax.reduce(values, initial=-np.inf))
    if not most > least:
        return np.where(np.isnan(values), np.nan, 1.0)
    scores: Floats = (most - values) / (most - least)
    return scores


def weighted_sum(scores: Sequence[tuple[float, Floats]], count: int) -> Floats:
    """Add up scores, each clamped to 0..1 and times its weight; unknown counts as a half."""
    total: Floats = np.zeros(count)
    for weight, score in scores:
        known = np.where(np.isnan(score), UNKNOWN_SCORE, score)
        total += weight * np.minimum(np.maximum(known, 0.0), 1.0)
    return total
