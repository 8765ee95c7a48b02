"""Parameters and bytes out of published shapes, against the totals that publishers name."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.serving import shapes
from controlplane.serving.presets import presets
from controlplane.serving.shapes import Architecture, Latent, architecture_of

COUNTED = [
    preset
    for preset in presets().values()
    if preset.published_parameters and shapes.parameters(preset.architecture)
]


@pytest.mark.parametrize("preset", COUNTED, ids=lambda preset: preset.slug)
def test_counted_parameters_are_the_published_ones(preset: Any) -> None:
    counted = shapes.parameters(preset.architecture)

    assert counted.total == pytest.approx(preset.published_parameters, rel=0.015)


@pytest.mark.parametrize(
    ("slug", "active"),
    [
        ("gpt-oss-120b", 5.1e9), ("deepseek-v3", 37e9), ("qwen3-235b-a22b", 22e9),
        ("qwen3-30b-a3b", 3.3e9), ("solar-open-100b", 12e9),
    ],
)  # fmt: skip
def test_active_parameters_are_near_the_published_ones(slug: str, active: float) -> None:
    """Publishers round, and differ in whether they count the embeddings."""
    counted = shapes.parameters(presets()[slug].architecture)

    assert counted is not None
    assert counted.active == pytest.approx(active, rel=0.08)


def test_experts_in_mxfp4_leave_the_rest_in_16_bits() -> None:
    """The checkpoint of gpt-oss-120b has 65.2 GB in its model card's files."""
    assert presets()["gpt-oss-120b"].weight_bytes("mxfp4") == pytest.approx(65.2e9, rel=0.005)


def test_fp8_weights_keep_embeddings_and_router_in_16_bits() -> None:
    preset = presets()["qwen3-32b"]
    counted = shapes.parameters(preset.architecture)

    assert counted is not None
    assert preset.weight_bytes("bf16") == 2 * counted.total
    assert preset.weight_bytes("fp8") == counted.total + counted.embeddings


@pytest.mark.parametrize("precision", ["int4", "awq", ""])
def test_a_precision_without_a_rule_is_unknown(precision: str) -> None:
    assert presets()["qwen3-8b"].weight_bytes(precision) is None


def test_latent_attention_keeps_its_rank_and_its_rope_per_token() -> None:
    shape = presets()["deepseek-v3"].architecture

    assert shapes.kv_values_per_token(shape) == 576


def test_layers_with_a_state_have_no_known_cache() -> None:
    preset = presets()["granite-4.0-h-tiny"]

    assert shapes.kv_values_per_token(preset.architecture) is None
    assert shapes.parameters(preset.architecture) is None
    assert preset.parameters == 7_000_000_000


def test_an_incomplete_shape_takes_the_published_total() -> None:
    preset = presets()["k-exaone-236b-a23b"]

    assert shapes.parameters(preset.architecture) is None
    assert preset.weight_bytes("bf16") == 472_000_000_000
    assert preset.weight_bytes("mxfp4") is None


def test_a_field_that_nobody_knows_is_refused() -> None:
    with pytest.raises(TypeError):
        architecture_of({"layers": 1, "depth": 2})


SIZES = st.integers(1, 64)


@st.composite
def architectures(draw: st.DrawFn) -> Architecture:
    latent = draw(st.booleans())
    moe = draw(st.booleans())
    layers = draw(SIZES)
    return Architecture(
        layers=layers, hidden=64 * draw(SIZES), heads=draw(SIZES), kv_heads=draw(SIZES),
        head_size=draw(SIZES), ffn=draw(SIZES), vocab=draw(SIZES),
        tied_embeddings=draw(st.sampled_from([True, False, None])),
        experts=draw(SIZES) if moe else 0, top_k=1, moe_intermediate=draw(SIZES),
        dense_layers=draw(st.integers(0, layers)) if moe else 0,
        latent=Latent(kv_rank=draw(SIZES), rope=draw(SIZES), nope=4, value=4) if latent else None,
    )  # fmt: skip


@given(architectures())
def test_a_smaller_precision_never_takes_more_and_active_is_part_of_all(
    shape: Architecture,
) -> None:
    counted = shapes.parameters(shape)
    sizes = [shapes.weight_bytes(shape, precision) for precision in ("bf16", "fp8")]

    assert counted is not None
    assert all(size is not None and size > 0 for size in sizes)
    assert sizes[0] >= sizes[1]  # type: ignore[operator]
    if shape.top_k <= max(1, shape.experts):
        assert counted.active <= counted.total


@given(architectures(), st.sampled_from(["hidden", "heads", "vocab"]))
def test_without_a_figure_it_is_unknown_and_never_zero(shape: Architecture, name: str) -> None:
    values = {field: getattr(shape, field) for field in shape.__slots__}

    assert shapes.parameters(Architecture(**values | {name: None})) is None
