"""Which engine a group gives for a model, and why there may be none."""

import pytest

from routing.planner.engines import Engine, Refusal, engine_of, widths_of
from routing.planner.problem import Card, Shape
from tests.routing.planner.fleets import demand, group

CARD = Card(peak_tflops=500, memory_bytes=80e9, bandwidth_bytes_per_second=2e12)
SHAPE = Shape(
    layers=80, hidden=8192, kv_bytes_per_token=327_680, weight_bytes=141e9,
    flops_per_token=139e9, attention_flops_per_token_per_context_token=2_621_440,
)  # fmt: skip


def test_a_calibrated_profile_is_taken_where_there_is_one() -> None:
    engine = engine_of(group(), demand(), 1)

    assert isinstance(engine, Engine)
    assert not engine.is_estimate


def test_unknown_cards_follow_the_data_sheet_and_say_so() -> None:
    engine = engine_of(group("some-npu", card=CARD), demand(), 1)

    assert isinstance(engine, Engine)
    assert engine.is_estimate


def test_without_any_figures_nothing_is_guessed() -> None:
    assert engine_of(group("some-npu"), demand(), 1) == Refusal("unknown-figures", "some-npu")
    asked = demand(model="some-model")
    assert engine_of(group(), asked, 1) == Refusal("unknown-figures", "some-model")


def test_a_model_too_large_for_one_card_fits_on_four() -> None:
    asked = demand(model="large", shape=SHAPE)

    small = engine_of(group("npu", card=CARD), asked, 1)
    wide = engine_of(group("npu", card=CARD), asked, 4)

    assert isinstance(small, Refusal)
    assert small.code == "memory"
    assert isinstance(wide, Engine)


def test_more_cards_together_are_faster_but_not_so_many_times() -> None:
    one = engine_of(group("npu", card=CARD), demand(), 1)
    four = engine_of(group("npu", card=CARD), demand(), 4)
    assert isinstance(one, Engine)
    assert isinstance(four, Engine)

    ratio = one.profile.prefill_seconds(1000, 0) / four.profile.prefill_seconds(1000, 0)

    assert 1 < ratio < 4


def test_a_slow_group_is_slow_in_both_phases() -> None:
    usual = engine_of(group(), demand(), 1)
    slow = engine_of(group(speed=0.25), demand(), 1)
    assert isinstance(usual, Engine)
    assert isinstance(slow, Engine)

    assert slow.profile.prefill_seconds(500, 0) == pytest.approx(
        4 * usual.profile.prefill_seconds(500, 0)
    )
    assert slow.profile.decode_seconds(8, 9000) == pytest.approx(
        4 * usual.profile.decode_seconds(8, 9000)
    )
    # What a router believes at first is the data sheet.
    assert slow.prior == usual.prior


def test_an_engine_that_refuses_the_model_gives_its_reason() -> None:
    refusing = group(refuses={"granite-4.1-8b": "No image for this vendor."})

    found = engine_of(refusing, demand(), 1)

    assert found == Refusal("refused", "No image for this vendor.")


def test_widths_leave_no_accelerator_over() -> None:
    assert widths_of(group(accelerators_per_node=6)) == (1, 2)
    assert widths_of(group(accelerators_per_node=8)) == (1, 2, 4, 8)


def test_a_class_of_two_cards_that_was_measured_is_not_estimated() -> None:
    asked = demand(model="qwen3-32b", lengths={"prompt_tokens": 7000, "output_tokens": 1000})
    sheet = Card(peak_tflops=989, memory_bytes=80e9, bandwidth_bytes_per_second=3.35e12)

    pair = engine_of(group("nvidia-h100-sxm", card=sheet), asked, 2)

    assert isinstance(pair, Engine)
    assert pair.profile.accelerator == "nvidia-h100-sxm-tp2"
    assert not pair.is_estimate
