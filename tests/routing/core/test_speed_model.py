"""The parts of a time and the columns made from them say the same."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from routing.core import speed_model
from routing.core.document import SpeedPrior

PRIOR = SpeedPrior(
    prefill_tokens_per_second=20_000,
    step_seconds=6e-3,
    step_seconds_per_sequence=5e-5,
    step_seconds_per_context_token=8e-8,
    kv_bytes_per_token=163_840,
)


def test_a_prompt_of_the_reference_length_is_computed_at_the_stated_rate() -> None:
    parts = speed_model.prefill_parts(PRIOR, tokens=4096, context=2048, step=0.0)

    assert parts[0] + parts[1] == pytest.approx(4096 / 20_000)
    assert parts[2:] == (0.0, 0.0, speed_model.NETWORK_SECONDS)


def test_a_longer_context_costs_attention_only() -> None:
    short, long = (
        speed_model.prefill_parts(PRIOR, tokens=1000, context=context, step=0.01)
        for context in (1000, 50_000)
    )

    assert long[1] == pytest.approx(50 * short[1])
    assert (long[0], *long[2:]) == (short[0], *short[2:])


@given(
    tokens=st.floats(1, 1e5),
    context=st.floats(0, 1e5),
    sequences=st.floats(0, 500),
    batch=st.floats(0, 1e6),
)
def test_columns_times_work_are_the_sum_of_the_parts(
    tokens: float, context: float, sequences: float, batch: float
) -> None:
    column = dict(zip(speed_model.COLUMNS, speed_model.coefficients(PRIOR), strict=True))

    decode = speed_model.decode_parts(PRIOR, sequences=sequences, context=batch)
    step = (
        column["step_seconds"]
        + column["step_seconds_per_sequence"] * sequences
        + column["step_seconds_per_context_token"] * batch
    )
    prefill = speed_model.prefill_parts(PRIOR, tokens=tokens, context=context, step=step)

    assert sum(decode) == pytest.approx(step)
    assert sum(prefill) == pytest.approx(
        tokens
        * (
            column["prefill_seconds_per_token"]
            + column["prefill_seconds_per_token_and_context"] * context
            + column["prefill_steps_per_token"] * step
        )
        + column["first_step_factor"] * step
        + column["network_seconds"]
    )
