"""What fits on accelerators: published figures, and rules that hold for every model."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.serving.fit import (
    GIB,
    Footprint,
    Load,
    Place,
    fit,
    sequence_bytes,
    smallest_tensor_parallel,
)
from controlplane.serving.presets import presets

H100_SXM = 85_899_345_920
LOAD = Load(context_tokens=8192, concurrency=8)


def footprint(slug: str, precision: str = "") -> Footprint:
    preset = presets()[slug]
    return preset.footprint(precision=precision or preset.precision)


def place(**overrides: Any) -> Place:
    return Place(**{"memory_bytes": H100_SXM, "share": 0.9} | overrides)


def test_the_tokens_of_a_published_run_come_out_within_an_eighth() -> None:
    """llm-d's precise prefix guide: Qwen3-32B over two H100 SXM at 0.95 holds 307,328 tokens."""
    found = fit(
        footprint("qwen3-32b"),
        place(share=0.95, tensor_parallel=2),
        replace(LOAD, context_tokens=16),
    )

    assert found.kv_tokens is not None
    assert 307_328 < found.kv_tokens < 307_328 * 1.125


def test_a_model_that_is_larger_than_the_memory_says_over_how_many_it_fits() -> None:
    model = footprint("llama-3.3-70b")

    assert fit(model, place(), LOAD).verdict == "too_small"
    assert smallest_tensor_parallel(model, place(), LOAD) == 4


def test_weights_that_leave_room_for_some_of_the_sequences_are_tight() -> None:
    found = fit(footprint("qwen3-32b"), place(memory_bytes=94_000_000_000), LOAD)

    assert found.verdict == "tight"
    assert found.sequences is not None
    assert 0 < found.sequences < LOAD.concurrency


def test_heads_that_cannot_be_divided_are_said() -> None:
    assert fit(footprint("qwen3-14b"), place(tensor_parallel=16), LOAD).verdict == "not_divisible"


@pytest.mark.parametrize(
    ("model", "where"),
    [
        (footprint("granite-4.0-h-tiny"), place()),
        (footprint("qwen3-8b"), place(memory_bytes=None)),
        (replace(footprint("qwen3-8b"), weight_bytes=None), place()),
        (footprint("qwen3-8b", "int4"), place()),
    ],
)
def test_what_is_not_known_is_unknown_and_never_a_number(model: Footprint, where: Place) -> None:
    found = fit(model, where, LOAD)

    assert found.verdict == "unknown"
    assert found.sequences is found.kv_tokens is None
    assert smallest_tensor_parallel(model, where, LOAD) is None


def test_latent_cache_is_whole_on_every_accelerator_and_grouped_heads_are_split() -> None:
    latent, grouped = footprint("deepseek-v3"), footprint("qwen3-32b")

    assert sequence_bytes(latent, place(tensor_parallel=8), 4096) == 61 * 4096 * 1152
    alone, split = (sequence_bytes(grouped, place(tensor_parallel=count), 4096) for count in (1, 8))
    assert alone == 8 * (split or 0) == 4096 * 262_144
    assert sequence_bytes(grouped, place(tensor_parallel=16), 4096) == split


def test_a_sliding_window_bounds_what_its_layers_keep() -> None:
    model = footprint("gpt-oss-120b")

    long, longer = (sequence_bytes(model, place(), tokens) or 0 for tokens in (65_536, 131_072))

    assert longer - long == 65_536 * 18 * 2048


def test_gaudis_blocks_round_a_short_sequence_up() -> None:
    model = footprint("granite-4.1-8b")

    assert sequence_bytes(model, place(block_tokens=128), 1) == 128 * 163_840


FOOTPRINTS = st.builds(
    Footprint,
    weight_bytes=st.integers(1, 10**12), layers=st.integers(1, 128), heads=st.just(64),
    kv_heads=st.one_of(st.none(), st.sampled_from([1, 2, 4, 8, 64])),
    kv_bytes_per_token_and_layer=st.integers(1, 64).map(lambda n: n * 256),
    window=st.one_of(st.none(), st.integers(1, 4096)), has_experts=st.booleans(),
)  # fmt: skip
PLACES = st.builds(
    Place,
    memory_bytes=st.integers(GIB, 10**12), share=st.floats(0.1, 0.98),
    tensor_parallel=st.sampled_from([1, 2, 4, 8]), pipeline_parallel=st.integers(1, 4),
    block_tokens=st.sampled_from([1, 16, 128]),
)  # fmt: skip
LOADS = st.builds(Load, context_tokens=st.integers(1, 200_000), concurrency=st.integers(1, 256))


@given(FOOTPRINTS, PLACES, LOADS)
def test_the_parts_never_exceed_what_the_engine_may_use(
    model: Footprint, where: Place, load: Load
) -> None:
    found = fit(model, where, load)

    assert found.verdict in {"fits", "tight", "too_small"}
    assert found.sequences is not None
    assert found.kv_bytes is not None
    assert found.kv_bytes_per_sequence is not None
    assert found.sequences * found.kv_bytes_per_sequence <= found.kv_bytes
    if found.kv_bytes:
        assert found.weight_bytes + found.reserve_bytes + found.kv_bytes == found.usable_bytes  # type: ignore[operator]


@given(FOOTPRINTS, PLACES, LOADS, st.integers(0, 10**11))
def test_more_memory_never_holds_fewer_sequences(
    model: Footprint, where: Place, load: Load, more: int
) -> None:
    larger = replace(where, memory_bytes=(where.memory_bytes or 0) + more)

    assert (fit(model, larger, load).sequences or 0) >= (fit(model, where, load).sequences or 0)


@given(FOOTPRINTS, PLACES, LOADS, st.integers(0, 100_000))
def test_a_longer_context_never_holds_more_sequences(
    model: Footprint, where: Place, load: Load, more: int
) -> None:
    longer = replace(load, context_tokens=load.context_tokens + more)

    assert (fit(model, where, longer).sequences or 0) <= (fit(model, where, load).sequences or 0)


@given(FOOTPRINTS, PLACES, st.integers(1, 200_000), st.integers(0, 128))
def test_a_window_never_adds_to_what_a_sequence_keeps(
    model: Footprint, where: Place, tokens: int, count: int
) -> None:
    without = replace(model, window=None)
    layers = min(count, model.layers)
    windowed = replace(model, window=model.window or 1, window_layers=layers)

    assert (sequence_bytes(windowed, where, tokens) or 0) <= (
        sequence_bytes(without, where, tokens) or 0
    )


@given(FOOTPRINTS, PLACES, LOADS)
def test_more_tensor_parallel_accelerators_never_take_more_each(
    model: Footprint, where: Place, load: Load
) -> None:
    one = fit(model, replace(where, tensor_parallel=1), load)
    eight = fit(model, replace(where, tensor_parallel=8), load)

    assert (eight.weight_bytes or 0) <= (one.weight_bytes or 0)
    assert (eight.kv_bytes_per_sequence or 0) <= (one.kv_bytes_per_sequence or 0)
