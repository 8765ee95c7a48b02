"""Predicted against real cached tokens, per endpoint: the rates, and what a difference means.

A prediction is what the index said where a prompt was computed. Reality is `cached_tokens` of the
engine's usage; where an engine leaves that out, its counters of queried and found prompt tokens say
the same over a window, as long as the window's prompts were mostly this router's.
"""

from dataclasses import dataclass

from routing.core.signals import EngineSignals

SHARE_KEPT = 0.97
"""Of a sum, with each request: a mean over the last 30 or so."""
WINDOW_REQUESTS = 20
"""So many requests make a verdict, or a window of counters."""
OWN_SHARE = (0.8, 1.25)
"""Our prompt tokens over the engine's, between which a window's prompts were ours."""
CONFIRMED_TOO_LITTLE = 0.3
UNPREDICTED_SHARE = 0.2


@dataclass(slots=True)
class HitAudit:
    """One endpoint instance."""

    requests: int = 0
    """Whose reality is known."""
    prompt_tokens: float = 0.0
    """These three are sums in which old requests fade."""
    predicted_tokens: float = 0.0
    cached_tokens: float = 0.0
    # Prompts without a report, since the window began.
    _unreported: int = 0
    _prompts: float = 0.0
    _predicted: float = 0.0
    _queries_at: float | None = None
    _hits_at: float | None = None

    def observe(
        self, *, prompt_tokens: int, predicted_tokens: int, cached_tokens: int | None
    ) -> None:
        """One prompt was computed."""
        self._prompts += prompt_tokens
        if cached_tokens is None:
            self._unreported += 1
            self._predicted += predicted_tokens
            return
        self._add(1, prompt_tokens, predicted_tokens, cached_tokens)

    def _add(self, requests: int, prompt: float, predicted: float, cached: float) -> None:
        kept = SHARE_KEPT**requests
        self.requests += requests
        self.prompt_tokens = kept * self.prompt_tokens + prompt
        self.predicted_tokens = kept * self.predicted_tokens + predicted
        self.cached_tokens = kept * self.cached_tokens + cached

    def read(self, signals: EngineSignals) -> tuple[float, float] | None:
        """Take the engine's counters; predicted and found tokens when a window ends with both."""
        queries, hits = signals.prefix_queries_total, signals.prefix_hits_total
        if queries is None or hits is None:
            return None
        before = self._queries_at, self._hits_at
        if before[0] is None or before[1] is None or queries < before[0] or hits < before[1]:
            self._begin_window(queries, hits)
            return None
        if self._unreported < WINDOW_REQUESTS:
            return None
        asked, found = queries - before[0], hits - before[1]
        unreported, prompts, predicted = self._unreported, self._prompts, self._predicted
        self._begin_window(queries, hits)
        low, high = OWN_SHARE
        if not low * asked <= prompts <= high * asked:
            # Other people's prompts, or prompts that are still running.
            return None
        self._add(unreported, prompts, predicted, found)
        return predicted, found

    def _begin_window(self, queries: float, hits: float) -> None:
        self._queries_at, self._hits_at = queries, hits
        self._unreported, self._prompts, self._predicted = 0, 0.0, 0.0

    @property
    def predicted_rate(self) -> float | None:
        """Share of prompt tokens that were predicted to be cached, 0 to 1."""
        return self.predicted_tokens / self.prompt_tokens if self.prompt_tokens else None

    @property
    def real_rate(self) -> float | None:
        """Share of prompt tokens that were cached, 0 to 1."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else None

    @property
    def is_unconfirmed(self) -> bool:
        """Hits were predicted and mostly did not happen."""
        return (
            self.requests >= WINDOW_REQUESTS
            and self.predicted_tokens > 0.05 * self.prompt_tokens
            and self.cached_tokens < CONFIRMED_TOO_LITTLE * self.predicted_tokens
        )

    @property
    def is_unpredicted(self) -> bool:
        """No hit was predicted at all, and yet there were hits."""
        return (
            self.requests >= WINDOW_REQUESTS
            and self.predicted_tokens <= 0.001 * self.prompt_tokens
            and self.cached_tokens > UNPREDICTED_SHARE * self.prompt_tokens
        )
