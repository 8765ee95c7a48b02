"""On which accelerators a model fits, in figures and in words."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from controlplane.serving import facts, presets
from controlplane.serving.fit import (
    Fit,
    Footprint,
    Load,
    Place,
    fit,
    smallest_tensor_parallel,
)
from controlplane.serving.models import Model
from inventory import selectors as inventory
from inventory.models import AcceleratorModel

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

SHARE = 0.9
"""vLLM's own default, where no share is known for a vendor."""
USUAL_CONTEXT_TOKENS, USUAL_SEQUENCES = 8192, 8
"""The load that is asked for when nobody says another; the same as the check of plans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What shall fit: `model` is a row's or a preset's short name."""

    model: str
    precision: str = ""
    """Empty: as the model is published, or as its row says."""
    kv_dtype: str = "bf16"
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    context_tokens: int = USUAL_CONTEXT_TOKENS
    concurrency: int = USUAL_SEQUENCES


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFit:
    """The answer for one model of accelerators."""

    accelerator: AcceleratorModel
    count: int
    """How many of them the inventory has in use."""
    share: float
    question: Question
    fit: Fit
    smallest_tensor_parallel: int | None
    """Fewest accelerators over which the same load fits; None if no size is known to."""

    @property
    def sentence(self) -> str:
        """The answer in words, in the language of the reader."""
        return _sentence(self)


def footprint_named(question: Question, models: Iterable[Model] = ()) -> Footprint | None:
    """What the asked model takes; None if neither a row nor a preset has its name.

    A row's own bytes of weights win over the preset's: somebody may have changed them.
    """
    preset = presets.presets().get(question.model)
    row = next((model for model in models if model.slug == question.model), None)
    if preset is not None:
        wanted = question.precision or (row.precision if row else preset.precision)
        found = preset.footprint(precision=wanted, kv_dtype=question.kv_dtype)
        if row is not None and wanted == row.precision:
            return replace(found, weight_bytes=row.weight_bytes)
        return found
    return None if row is None else _footprint_of_row(row, question)


def model_fits(
    viewer: "User", question: Question, *, accelerator: str = "", model: Model | None = None
) -> list[ModelFit] | None:
    """Answers for every model of accelerators that the person may see, or for one of them.

    None if the asked model is not known. One query.
    """
    found = footprint_named(question, [model] if model else [])
    if found is None:
        return None
    rows = inventory.models_for_viewer(viewer)
    if accelerator:
        rows = rows.filter(slug=accelerator)
    return [_answer(row, found, question) for row in rows]


def _answer(row: Any, found: Footprint, question: Question) -> ModelFit:
    share = _share(row.vendor)
    place = Place(
        memory_bytes=row.memory_bytes,
        share=share,
        tensor_parallel=question.tensor_parallel,
        pipeline_parallel=question.pipeline_parallel,
        block_tokens=_block(row.vendor),
    )
    load = Load(context_tokens=question.context_tokens, concurrency=question.concurrency)
    return ModelFit(
        accelerator=row,
        count=row.accelerator_count,
        share=share,
        question=question,
        fit=fit(found, place, load),
        smallest_tensor_parallel=smallest_tensor_parallel(found, place, load),
    )


def _footprint_of_row(row: Model, question: Question) -> Footprint:
    known = row.precision == (question.precision or row.precision)
    per_layer = row.kv_bytes_per_token // row.layers
    heads = row.shape.get("heads")
    return Footprint(
        weight_bytes=row.weight_bytes if known else None,
        layers=row.layers,
        heads=heads if isinstance(heads, int) else None,
        kv_heads=row.kv_heads,
        # A row states the bytes of a 2-byte cache.
        kv_bytes_per_token_and_layer=per_layer // 2 if question.kv_dtype == "fp8" else per_layer,
        has_experts=bool(row.shape.get("experts")),
    )


def _engine_facts(vendor: str) -> dict[str, float]:
    found: dict[str, float] = (
        facts.load("engines")["vllm"]["vendors"].get(vendor, {}).get("arguments", {})
    )
    return found


def _share(vendor: str) -> float:
    return float(_engine_facts(vendor).get("gpu-memory-utilization", SHARE))


def _block(vendor: str) -> int:
    return int(_engine_facts(vendor).get("block-size", 16))


def _sentence(answer: ModelFit) -> str:
    question, found = answer.question, answer.fit
    if found.verdict == "unknown":
        return _("Memory, weights or cache of this pair is not known, so the fit is not known.")
    if found.verdict == "not_divisible":
        return _("The attention heads cannot be divided by {count} accelerators.").format(
            count=question.tensor_parallel
        )
    count = question.tensor_parallel * question.pipeline_parallel
    if found.verdict == "fits":
        return _(
            "Fits on {count}: {sequences} sequences of {tokens} tokens at a time; {asked} are asked"
            " for."
        ).format(
            count=count,
            sequences=found.sequences,
            tokens=question.context_tokens,
            asked=question.concurrency,
        )
    tail = _tail(answer)
    if found.verdict == "tight":
        return (
            _("Tight on {count}: {sequences} of {asked} sequences of {tokens} tokens.").format(
                count=count,
                sequences=found.sequences,
                asked=question.concurrency,
                tokens=question.context_tokens,
            )
            + tail
        )
    return (
        _("Too large for {count}: no sequence of {tokens} tokens beside the weights.").format(
            count=count, tokens=question.context_tokens
        )
        + tail
    )


def _tail(answer: ModelFit) -> str:
    if answer.smallest_tensor_parallel is None:
        return ""
    return " " + _("Over {count} it fits.").format(count=answer.smallest_tensor_parallel)
