"""The five disjoint token buckets: every token of a request is in exactly one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBuckets:
    """Counts of one attempt. None is unknown, never 0."""

    input_uncached: int | None
    cache_read: int | None
    cache_write: int | None
    output: int | None
    reasoning: int | None

    @property
    def total(self) -> int:
        """All known tokens."""
        return sum(
            value or 0
            for value in (
                self.input_uncached,
                self.cache_read,
                self.cache_write,
                self.output,
                self.reasoning,
            )
        )


def openai_buckets(
    *,
    prompt_tokens: int | None,
    cached_tokens: int | None,
    completion_tokens: int | None,
    reasoning_tokens: int | None = None,
) -> TokenBuckets:
    """Split usage in OpenAI's style, where prompt tokens include the cached ones.

    Unknown cached tokens are 0 where the prompt is known: the engines are started with prompt token
    details on, and they leave the field out when nothing was cached. Cached tokens above the prompt
    (two engines counted one prompt) are cut to it, so that the buckets still sum to the prompt.
    """
    if prompt_tokens is None:
        read = uncached = None
    else:
        read = min(cached_tokens or 0, prompt_tokens)
        uncached = prompt_tokens - read
    if completion_tokens is None:
        output = reasoning = None
    else:
        reasoning = min(reasoning_tokens or 0, completion_tokens)
        output = completion_tokens - reasoning
    return TokenBuckets(
        input_uncached=uncached,
        cache_read=read,
        cache_write=None if prompt_tokens is None else 0,
        output=output,
        reasoning=reasoning,
    )
