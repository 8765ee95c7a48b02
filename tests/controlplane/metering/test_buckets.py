"""Token buckets are disjoint and sum to the usage."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.metering.buckets import openai_buckets

COUNTS = st.integers(0, 10**9)


@given(COUNTS, st.none() | COUNTS, COUNTS, st.none() | COUNTS)
def test_buckets_sum_to_prompt_and_completion(
    prompt: int, cached: int | None, completion: int, reasoning: int | None
) -> None:
    buckets = openai_buckets(
        prompt_tokens=prompt,
        cached_tokens=cached,
        completion_tokens=completion,
        reasoning_tokens=reasoning,
    )

    assert buckets.total == prompt + completion
    assert min(buckets.input_uncached or 0, buckets.cache_read or 0, buckets.output or 0) >= 0


def test_unknown_usage_stays_unknown() -> None:
    buckets = openai_buckets(prompt_tokens=None, cached_tokens=None, completion_tokens=None)

    assert buckets.input_uncached is None
    assert buckets.cache_read is None
    assert buckets.output is None


def test_cached_tokens_are_taken_out_of_the_prompt() -> None:
    buckets = openai_buckets(prompt_tokens=7200, cached_tokens=6000, completion_tokens=150)

    assert (buckets.input_uncached, buckets.cache_read, buckets.output) == (1200, 6000, 150)
