"""Expected output length per tenant and model, and bytes per token per model; both learned.

The length is a streaming median: each observation moves the estimate by a fixed share towards it,
so outliers count once and the table needs a few numbers per pair. An answer that outlives what was
expected of it says so at once, not when it ends: where answers take minutes, everything would be
priced by the first guess until then. Bytes per token is an exponentially
weighted mean, because it is nearly constant for a tenant's text.
"""

import math
from collections import OrderedDict

FIRST_GUESS_TOKENS = 256
"""Before anything was seen, capped by the request's own max_tokens."""
OUTLIVED_BY = 1.5
"""How long an answer gets that outlived its expectation, as a multiple of what it has."""
_FIRST_STEP, _LAST_STEP = 0.5, 0.02
"""Shares by which the median moves: large at first, small but never 0 later."""
_MAX_PAIRS = 10_000
_RATIO_STEP = 0.05
_RATIO_RANGE = (0.25, 64.0)


class OutputLengths:
    """Streaming medians, at most `_MAX_PAIRS`; the least recently used one is forgotten."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()
        """Median and the number of answers that ended."""

    def expected(self, tenant: str, model: str, *, maximum: int | None) -> int:
        """Output tokens to expect, at least 1, never above what the request allows."""
        median, _ = self._known.get((tenant, model), (float(FIRST_GUESS_TOKENS), 0))
        return max(1, round(median if maximum is None else min(median, maximum)))

    def observe(self, tenant: str, model: str, tokens: int) -> None:
        """Move the median by a share; the first observation is taken as it is."""
        if tokens < 1:
            return
        key = (tenant, model)
        median, ends = self._known.pop(key, (float(tokens), 0))
        self._put(key, _moved(median, float(tokens), ends), ends + 1)

    def outlived(self, tenant: str, model: str, tokens: int, *, again: bool) -> None:
        """An answer has `tokens` and goes on: it is taken to reach half as many more.

        Until some answer ended, that is all there is to know. After that it moves the median like
        an end, but only when it is said of an answer for the first time: each is to count once.
        """
        key, longer = (tenant, model), OUTLIVED_BY * tokens
        median, ends = self._known.get(key, (0.0, 0))
        if tokens < 1 or tokens < round(median) or (again and ends):
            return
        self._known.pop(key, None)
        moved = max(median, longer) if not ends else _moved(median, longer, ends)
        self._put(key, moved, ends)

    def _put(self, key: tuple[str, str], median: float, ends: int) -> None:
        self._known[key] = (median, ends)
        if len(self._known) > _MAX_PAIRS:
            self._known.popitem(last=False)

    def forget(self) -> None:
        """Back to the first guess."""
        self._known.clear()


def _moved(median: float, tokens: float, ends: int) -> float:
    """The median a step nearer to an observation; a step never jumps over it."""
    if tokens == median:
        return median
    step = max(_LAST_STEP, _FIRST_STEP / (ends + 1))
    moved = median * math.exp(math.copysign(step, tokens - median))
    return min(moved, tokens) if tokens > median else max(moved, tokens)


class BytesPerToken:
    """How many bytes of the canonical prompt make one token, per model."""

    def __init__(self, first_guess: float) -> None:
        self.first_guess = first_guess
        self._ratio: dict[str, float] = {}

    def of(self, model: str) -> float:
        """Bytes per token; the document's first guess while nothing was measured."""
        return self._ratio.get(model, self.first_guess)

    def observe(self, model: str, *, prompt_bytes: int, prompt_tokens: int) -> None:
        """Learn from the engine's own count. Short prompts say more about templates: ignored."""
        if prompt_tokens < 32 or prompt_bytes < 1:
            return
        seen = min(max(prompt_bytes / prompt_tokens, _RATIO_RANGE[0]), _RATIO_RANGE[1])
        known = self._ratio.get(model)
        if known is None and len(self._ratio) >= _MAX_PAIRS:
            return
        self._ratio[model] = seen if known is None else known + _RATIO_STEP * (seen - known)

    def forget(self) -> None:
        """Back to the first guess."""
        self._ratio.clear()

    def all(self) -> dict[str, float]:
        """Learned ratios by model name."""
        return dict(self._ratio)
