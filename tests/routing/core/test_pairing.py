"""Verdicts on KV hand-over between two endpoints."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from routing.core.document import KvContract
from routing.core.pairing import HOST_STAGING_SLOWDOWN, PairVerdict, pair
from tests.routing.pool.builders import CONTRACT

# An engine is always stated, and a link rate is a cost and not a condition.
FIELDS = sorted(set(CONTRACT) - {"engine", "transfer_bytes_per_second"})
STAGED = {"staging_device": "cpu"}


def verdict(prefill: dict[str, Any], decode: dict[str, Any]) -> PairVerdict:
    return pair(
        KvContract(**(CONTRACT | prefill)),
        KvContract(**(CONTRACT | decode)),
        kv_bytes_per_token=163_840,
    )


def test_equal_contracts_are_compatible_at_the_slower_ends_rate() -> None:
    found = verdict({"transfer_bytes_per_second": 1e9}, {"transfer_bytes_per_second": 4e9})

    assert found.verdict == "compatible"
    assert found.seconds_per_1000_tokens == pytest.approx(0.16384)


@pytest.mark.lesson("F06")
@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("engine", "sglang"),
        ("engine_version", "0.31"),
        ("connector", "mooncake"),
        ("connector_version", "2"),
        ("transport", "mori"),
        ("model_revision", "r2"),
        ("kv_dtype", "fp8"),
        ("kv_heads", 4),
        ("head_size", 64),
        ("tensor_parallel", 2),
        ("pipeline_parallel", 2),
        ("fabric", "roce-b"),
    ],
)
def test_what_must_agree_and_differs_is_incompatible_even_when_staged(
    field: str, other: Any
) -> None:
    found = verdict(STAGED, STAGED | {field: other})

    assert found.verdict == "incompatible"
    assert found.reason.startswith(
        f"{field} differs: {CONTRACT[field]} at the prefill end, {other}"
    )
    assert found.seconds_per_1000_tokens is None


@pytest.mark.lesson("W08", "F07")
@pytest.mark.parametrize(
    ("field", "other"),
    [("attention_backend", "ROCM"), ("layout", "NHD"), ("block_size_tokens", 128)],
)
def test_layouts_that_differ_need_staging_at_both_ends(field: str, other: Any) -> None:
    direct = verdict({}, {field: other})
    one_end = verdict(STAGED, {field: other})
    staged = verdict(STAGED, STAGED | {field: other})

    assert (direct.verdict, one_end.verdict) == ("incompatible", "incompatible")
    assert "stage through host memory" in direct.reason
    assert (staged.verdict, staged.staging) == ("compatible_with", "cpu")
    assert field in staged.reason


def test_staging_costs_its_passes() -> None:
    direct, staged = verdict({}, {}), verdict(STAGED, STAGED)

    assert direct.seconds_per_1000_tokens is not None
    assert staged.seconds_per_1000_tokens == pytest.approx(
        HOST_STAGING_SLOWDOWN * direct.seconds_per_1000_tokens
    )


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_that_one_end_does_not_state_makes_the_verdict_unknown(field: str) -> None:
    found = verdict({field: None}, {})

    assert (found.verdict, found.missing) == ("unknown", (field,))


def test_an_unstated_link_rate_is_an_unknown_cost_not_a_free_transfer() -> None:
    found = verdict({"transfer_bytes_per_second": None}, {})

    assert found.verdict == "compatible"
    assert found.seconds_per_1000_tokens is None


CONTRACTS = st.builds(
    KvContract,
    engine=st.sampled_from(["vllm", "sglang"]),
    kv_dtype=st.sampled_from([None, "bf16", "fp8"]),
    layout=st.sampled_from([None, "HND", "NHD"]),
    staging_device=st.sampled_from([None, "cpu"]),
    transfer_bytes_per_second=st.sampled_from([None, 1e9, 1e10]),
)


@settings(deadline=None)
@given(CONTRACTS, CONTRACTS)
def test_the_verdict_does_not_depend_on_the_direction(first: Any, second: Any) -> None:
    forth = pair(first, second, kv_bytes_per_token=1000)
    back = pair(second, first, kv_bytes_per_token=1000)

    assert (forth.verdict, forth.missing) == (back.verdict, back.missing)
    assert forth.seconds_per_1000_tokens == back.seconds_per_1000_tokens
    assert forth.reason.endswith(".")
