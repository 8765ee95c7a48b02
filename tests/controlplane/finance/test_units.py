"""Unit costs name the method that split them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.finance.units import Method, RoleUse, method_of, per_million, split_phases

PREFILL = RoleUse(prompt_computed_tokens=99_000)


@pytest.mark.parametrize(
    ("role", "uses", "expected"),
    [
        pytest.param("prefill", {}, Method.ROLE_LEDGER_EXACT, id="prefill"),
        pytest.param(
            "decode",
            {"prefill": PREFILL, "decode": RoleUse(prompt_computed_tokens=1_000)},
            Method.ROLE_LEDGER_EXACT,
            id="one-percent-on-decode",
        ),
        pytest.param(
            "decode",
            {
                "prefill": PREFILL,
                "decode": RoleUse(
                    prompt_computed_tokens=1_001, prefill_seconds=1.0, decode_seconds=9.0
                ),
            },
            Method.PHASE_TIME_MEASURED,
            id="more-than-one-percent",
        ),
        pytest.param(
            "both",
            {"both": RoleUse(prefill_seconds=1.0, decode_seconds=3.0)},
            Method.PHASE_TIME_MEASURED,
            id="both",
        ),
        pytest.param("both", {"both": RoleUse()}, Method.TOKEN_WEIGHT_2_5, id="no-times"),
    ],
)
def test_method(role: str, uses: dict[str, RoleUse], expected: Method) -> None:
    assert method_of(role, uses) == expected


def test_phases_of_both_follow_the_measured_time() -> None:
    use = RoleUse(prefill_seconds=1.0, decode_seconds=3.0)

    phases = split_phases(Decimal(8), "both", use, Method.PHASE_TIME_MEASURED)

    assert (phases.prompt, phases.output) == (Decimal(2), Decimal(6))


def test_assumed_weight_of_an_output_token() -> None:
    use = RoleUse(prompt_computed_tokens=500, output_tokens=200)

    phases = split_phases(Decimal(8), "both", use, Method.TOKEN_WEIGHT_2_5)

    assert (phases.prompt, phases.output) == (Decimal(4), Decimal(4))


def test_an_idle_role_has_no_split() -> None:
    phases = split_phases(Decimal(8), "both", RoleUse(), Method.TOKEN_WEIGHT_2_5)

    assert (phases.prompt, phases.output) == (None, None)


@given(
    st.decimals(min_value=0, max_value=10**6, places=10),
    st.integers(0, 10**9),
    st.integers(1, 10**9),
)
def test_phases_sum_to_the_cost(cost: Decimal, computed: int, output: int) -> None:
    use = RoleUse(prompt_computed_tokens=computed, output_tokens=output)

    phases = split_phases(cost, "both", use, Method.TOKEN_WEIGHT_2_5)

    assert (phases.prompt or 0) + (phases.output or 0) == cost


def test_no_tokens_have_no_price() -> None:
    assert per_million(Decimal(5), 0) is None
    assert per_million(Decimal(5), None) is None
    assert per_million(Decimal(3), 2_000_000) == Decimal("1.5")
