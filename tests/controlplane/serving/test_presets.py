"""Shipped presets: complete, sourced, and accepted by the engines they name arguments for."""

import pytest

from controlplane.serving import facts
from controlplane.serving.engines import launcher
from controlplane.serving.engines.base import check_arguments
from controlplane.serving.presets import Preset, model_fields, presets

ALL = list(presets().values())


def test_every_family_that_is_asked_for_is_there() -> None:
    families = {preset.family for preset in ALL}

    assert families == {
        "granite", "sarvam", "qwen3", "llama-3", "mistral", "gpt-oss", "deepseek", "exaone",
        "solar",
    }  # fmt: skip


@pytest.mark.parametrize("preset", ALL, ids=lambda preset: preset.slug)
def test_a_preset_names_its_source_and_its_checkpoints(preset: Preset) -> None:
    assert preset.source
    assert preset.confidence in {"vendor", "secondary", "unverified"}
    assert preset.checkpoints
    assert preset.parameters


@pytest.mark.parametrize("preset", ALL, ids=lambda preset: preset.slug)
def test_its_arguments_are_known_to_the_engines(preset: Preset) -> None:
    for engine, arguments in preset.arguments.items():
        check_arguments(launcher(engine), arguments)


def test_a_preset_agrees_with_the_catalogue_that_ships_beside_it() -> None:
    for row in facts.load("models")["models"]:
        preset = presets().get(row["slug"])
        if preset is None or row["slug"].startswith("gpt-oss"):
            continue  # gpt-oss: the catalogue has an approximation, the preset counts its parts
        fields = model_fields(preset)
        assert fields is not None
        assert fields["kv_bytes_per_token"] == row["kv_bytes_per_token"]
        assert fields["layers"] == row["layers"]
        assert fields["weight_bytes"] == pytest.approx(row["weight_bytes"], rel=0.01)
        assert fields["flops_per_token"] == pytest.approx(row["flops_per_token"], rel=0.01)


def test_a_model_whose_figures_are_not_all_published_is_no_row_of_the_catalogue() -> None:
    assert model_fields(presets()["sarvam-105b"]) is None
    assert model_fields(presets()["granite-4.0-h-tiny"]) is None
