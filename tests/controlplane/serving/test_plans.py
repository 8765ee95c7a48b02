"""Arithmetic of plans."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.serving.plans import (
    PlanItem,
    fingerprint,
    floor_count,
    items_of,
    lowest_count,
    role_counts,
    roles_after,
    spec_hash,
    waves_of,
)

ROLES = ["", "prefill", "decode", "both"]


def item(**overrides: Any) -> PlanItem:
    values = {
        "accelerator": "a", "node": "n", "hostname": "gpu-1", "slot": 0, "vendor": "amd",
        "accelerator_model": "amd-mi325x", "target": "local", "workload": "gpu-1-0",
        "from_role": "prefill", "to_role": "decode",
    }  # fmt: skip
    return PlanItem(**values | overrides)


items = st.lists(
    st.builds(
        item,
        accelerator=st.uuids().map(str),
        hostname=st.sampled_from(["gpu-1", "gpu-2"]),
        slot=st.integers(0, 7),
        from_role=st.sampled_from(ROLES),
        to_role=st.sampled_from(ROLES),
    ),
    max_size=20,
    unique_by=lambda row: row.accelerator,
)


@given(items, st.integers(1, 8))
def test_every_item_is_in_exactly_one_wave_and_no_wave_is_too_large(
    rows: list[PlanItem], per_wave: int
) -> None:
    waves = waves_of(rows, per_wave=per_wave)

    together = list(itertools.chain.from_iterable(waves))
    assert sorted(row.accelerator for row in together) == sorted(row.accelerator for row in rows)
    assert all(1 <= len(wave) <= per_wave for wave in waves)


@given(items)
def test_backwards_twice_is_the_same(rows: list[PlanItem]) -> None:
    plain = [row.as_json() for row in rows]

    assert [row.reversed() for row in items_of(plain, backwards=True)] == rows


@given(items)
def test_a_change_and_its_way_back_leave_the_roles_before(rows: list[PlanItem]) -> None:
    before = {row.accelerator: row.from_role for row in rows if row.from_role}

    after = roles_after(before, rows)

    assert roles_after(after, [row.reversed() for row in rows]) == before
    assert sum(role_counts(after).values()) == len(after)


@given(st.integers(0, 500), st.floats(0, 1))
def test_the_floor_is_the_share_rounded_up(serving: int, share: float) -> None:
    floor = floor_count(serving, floor_share=share)

    assert 0 <= floor <= serving
    assert floor >= serving * share - 1e-6


@pytest.mark.parametrize(
    ("serving", "per_wave", "lowest"), [(4, 1, 3), (4, 2, 2), (2, 2, 0), (8, 1, 7)]
)
def test_the_lowest_count_is_that_of_one_wave(serving: int, per_wave: int, lowest: int) -> None:
    rows = [item(accelerator=str(slot), slot=slot) for slot in range(2)]

    assert lowest_count(serving, waves_of(rows, per_wave=per_wave)) == lowest


def test_a_first_assignment_never_lowers_the_count() -> None:
    rows = [item(accelerator=str(slot), slot=slot, from_role="") for slot in range(4)]

    assert lowest_count(3, waves_of(rows, per_wave=2)) == 3


def test_equal_states_have_equal_fingerprints_whatever_their_order() -> None:
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})


def test_another_argument_or_variable_is_another_spec() -> None:
    same = spec_hash(["vllm", "serve"], {"A": "1"})

    assert same == spec_hash(["vllm", "serve"], {"A": "1"})
    assert len({same, spec_hash(["vllm"], {"A": "1"}), spec_hash(["vllm", "serve"], {})}) == 3
