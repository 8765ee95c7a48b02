"""Expected output lengths and bytes per token."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from routing.producers.lengths import FIRST_GUESS_TOKENS, BytesPerToken, OutputLengths


def test_the_first_guess_is_capped_by_the_request() -> None:
    lengths = OutputLengths()

    assert lengths.expected("t", "m", maximum=None) == FIRST_GUESS_TOKENS
    assert lengths.expected("t", "m", maximum=10) == 10


def test_tenants_and_models_are_learned_apart() -> None:
    lengths = OutputLengths()

    lengths.observe("a", "m", 1000)
    lengths.observe("b", "m", 10)

    assert lengths.expected("a", "m", maximum=None) == 1000
    assert lengths.expected("b", "m", maximum=None) == 10
    assert lengths.expected("a", "other", maximum=None) == FIRST_GUESS_TOKENS


def test_the_estimate_settles_near_the_median_and_ignores_outliers() -> None:
    rng = np.random.default_rng(3)
    lengths = OutputLengths()

    for value in rng.lognormal(np.log(200), 0.4, 3000):
        lengths.observe("t", "m", int(value))
    lengths.observe("t", "m", 1_000_000)

    assert lengths.expected("t", "m", maximum=None) == pytest.approx(200, rel=0.25)


@settings(deadline=None)
@given(st.lists(st.integers(-5, 10_000), max_size=60), st.integers(1, 500))
def test_the_estimate_stays_within_what_was_seen_and_what_is_allowed(
    seen: list[int], maximum: int
) -> None:
    lengths = OutputLengths()

    for value in seen:
        lengths.observe("t", "m", value)
    expected = lengths.expected("t", "m", maximum=None)

    counted = [value for value in seen if value >= 1] or [FIRST_GUESS_TOKENS]
    assert min(counted) - 1 <= expected <= max(counted) + 1
    assert 1 <= lengths.expected("t", "m", maximum=maximum) <= maximum


def test_bytes_per_token_follow_the_engines_count() -> None:
    ratio = BytesPerToken(4.0)

    for _ in range(200):
        ratio.observe("m", prompt_bytes=30_000, prompt_tokens=10_000)

    assert ratio.of("m") == pytest.approx(3.0)
    assert ratio.of("other") == 4.0


def test_short_prompts_say_nothing_about_bytes_per_token() -> None:
    ratio = BytesPerToken(4.0)

    ratio.observe("m", prompt_bytes=10, prompt_tokens=31)

    assert ratio.of("m") == 4.0


def test_answers_that_outlive_their_expectation_move_it_before_they_end() -> None:
    lengths, seen = OutputLengths(), 256

    for _ in range(6):
        for _ in range(20):
            lengths.outlived("t", "m", seen, again=True)
        seen = lengths.expected("t", "m", maximum=None)

    assert seen > 1500
    for _ in range(10):
        lengths.observe("t", "m", 1000)
    assert lengths.expected("t", "m", maximum=None) == pytest.approx(1000, rel=0.1)


def test_an_answer_below_the_expectation_outlives_nothing() -> None:
    lengths = OutputLengths()
    lengths.observe("t", "m", 1000)

    lengths.outlived("t", "m", 500, again=False)
    lengths.outlived("t", "m", 1500, again=True)

    assert lengths.expected("t", "m", maximum=None) == 1000


def test_long_running_answers_do_not_bias_a_median_of_which_ends_are_known() -> None:
    rng = np.random.default_rng(4)
    lengths = OutputLengths()

    for value in rng.lognormal(np.log(300), 0.5, 4000):
        expected = lengths.expected("t", "m", maximum=None)
        if value > expected:
            lengths.outlived("t", "m", expected, again=False)
        else:
            lengths.observe("t", "m", int(value))

    assert lengths.expected("t", "m", maximum=None) == pytest.approx(300, rel=0.25)
