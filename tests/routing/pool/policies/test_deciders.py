"""When a pair is wanted."""

import pytest

from routing.pool.policies.deciders import AlwaysDecider, DisaggProfileHandler, PrefixDecider


@pytest.mark.lesson("W25")
@pytest.mark.parametrize(
    ("threshold", "shortest", "prompt", "cached", "expected"),
    [
        pytest.param(0, 0, 5000, 0, False, id="0-is-never"),
        pytest.param(16, 0, 5000, 0, True, id="cold"),
        pytest.param(16, 0, 5000, 4984, True, id="exactly-enough-missing"),
        pytest.param(16, 0, 5000, 4985, False, id="one-token-less"),
        pytest.param(16, 0, 5000, 5000, False, id="all-cached"),
        pytest.param(16, 5001, 5000, 0, False, id="too-short"),
        pytest.param(16, 0, 1, 0, False, id="one-token"),
    ],
)
def test_the_prefix_decider(
    threshold: int, shortest: int, prompt: int, cached: int, *, expected: bool
) -> None:
    decider = PrefixDecider(non_cached_tokens=threshold, prompt_tokens=shortest)

    assert decider.wants_pair(prompt_tokens=prompt, cached_tokens=cached) == expected


def test_always_is_always() -> None:
    assert AlwaysDecider().wants_pair(prompt_tokens=1, cached_tokens=1.0)


def test_the_handlers_stages_have_upstreams_names() -> None:
    handler = DisaggProfileHandler()

    assert (handler.profiles.decode, handler.profiles.prefill) == ("decode", "prefill")
    assert handler.deciders.prefill == ""
