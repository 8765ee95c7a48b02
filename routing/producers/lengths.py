"""Expected output length per tenant and model, and bytes per token per model; both learned.

The length is a streaming median: each observation moves the estimate by a fixed share towards it,
so outliers count once and the table needs one number per pair. Bytes per token is an exponentially
weighted mean, because it is nearly constant for a tenant's text.
"""

import math
from collections import OrderedDict

FIRST_GUESS_TOKENS = 256
"""Before anything was seen, capped by the request's own max_tokens."""
_STEP = 0.05
_MAX_PAIRS = 10_000
_RATIO_STEP = 0.05
_RATIO_RANGE = (0.25, 64.0)


class OutputLengths:
    """Streaming medians, at most `_MAX_PAIRS`; the least recently used one is forgotten."""

    def __init__(self) -> None:
        self._median: OrderedDict[tuple[str, str], float] = OrderedDict()

    def expected(self, tenant: str, model: str, *, maximum: int | None) -> int:
        """Output tokens to expect, at least 1, never above what the request allows."""
        median = self._median.get((tenant, model), float(FIRST_GUESS_TOKENS))
        return max(1, round(median if maximum is None else min(median, maximum)))

    def observe(self, tenant: str, model: str, tokens: int) -> None:
        """Move the median by a share; the first observation is taken as it is."""
        if tokens < 1:
            return
        key = (tenant, model)
        median = self._median.pop(key, None)
        if median is None:
            median = float(tokens)
        elif tokens != median:
            moved = median * math.exp(math.copysign(_STEP, tokens - median))
            # A step never jumps over the observation itself.
            median = min(moved, tokens) if tokens > median else max(moved, tokens)
        self._median[key] = median
        if len(self._median) > _MAX_PAIRS:
            self._median.popitem(last=False)

    def forget(self) -> None:
        """Back to the first guess."""
        self._median.clear()


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
