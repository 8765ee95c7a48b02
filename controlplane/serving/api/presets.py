"""Shipped presets, and on which accelerators a model fits."""

from dataclasses import asdict
from typing import Any

from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, viewsets
from rest_framework.response import Response

from controlplane.common.errors import InvalidParameterError
from controlplane.common.http import ApiRequest
from controlplane.common.serializers import StrictSerializer
from controlplane.serving import presets, selectors
from controlplane.serving.fit import KV_BYTES
from controlplane.serving.models import Model
from controlplane.serving.presets import Preset
from controlplane.serving.shapes import BYTES


class PresetOutput(serializers.Serializer[Any]):
    """A model that ships with the product; null is unknown."""

    slug = serializers.CharField()
    family = serializers.CharField()
    name = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # a name that DRF uses, too
    confidence = serializers.CharField()
    licence = serializers.CharField(allow_null=True)
    gated = serializers.BooleanField(allow_null=True)
    max_model_len = serializers.IntegerField(allow_null=True)
    parameters = serializers.IntegerField(allow_null=True)
    shape = serializers.DictField()
    checkpoints = serializers.DictField(child=serializers.CharField())
    weight_bytes = serializers.DictField(
        child=serializers.IntegerField(allow_null=True), help_text="By precision."
    )
    arguments = serializers.DictField(help_text="Worth setting for this model, by engine.")


class PresetListOutput(serializers.Serializer[Any]):
    """All presets."""

    items = PresetOutput(many=True)
    next = serializers.CharField(allow_null=True)


class PresetViewSet(viewsets.GenericViewSet[Model]):
    """Models that ship with the product, with their published shape and its source."""

    request: ApiRequest
    serializer_class = PresetOutput
    pagination_class = None
    filter_backends = ()
    view_action = "serving.view_model"
    lookup_value_regex = "[a-z0-9.-]+"

    @extend_schema(responses=PresetListOutput)
    def list(self, request: ApiRequest) -> Response:
        """All presets, by short name."""
        rows = [_shown(row) for _slug, row in sorted(presets.presets().items())]
        return Response({"items": rows, "next": None})

    @extend_schema(
        responses=PresetOutput,
        parameters=[OpenApiParameter("id", str, OpenApiParameter.PATH, description="Slug.")],
    )
    def retrieve(self, request: ApiRequest, pk: str) -> Response:
        """One preset by its short name."""
        if pk not in presets.presets():
            raise Http404
        return Response(_shown(presets.presets()[pk]))


def _shown(row: Preset) -> dict[str, Any]:
    return {
        "slug": row.slug,
        "family": row.family,
        "name": row.name,
        "source": row.source,
        "confidence": row.confidence,
        "licence": row.licence,
        "gated": row.gated,
        "max_model_len": row.max_model_len,
        "parameters": row.parameters,
        "shape": asdict(row.architecture),
        "checkpoints": dict(row.checkpoints),
        "weight_bytes": {precision: row.weight_bytes(precision) for precision in row.checkpoints},
        "arguments": {engine: dict(known) for engine, known in row.arguments.items()},
    }


class FitQuestion(StrictSerializer):
    """What shall fit, and for which load."""

    model = serializers.CharField(max_length=120, help_text="Short name of a model or preset.")
    accelerator = serializers.CharField(
        max_length=100, required=False, default="", help_text="Short name; without it, all of them."
    )
    precision = serializers.ChoiceField(choices=sorted(BYTES), required=False, default="")
    kv_dtype = serializers.ChoiceField(choices=sorted(KV_BYTES), required=False, default="bf16")
    tensor_parallel = serializers.IntegerField(min_value=1, max_value=64, required=False, default=1)
    pipeline_parallel = serializers.IntegerField(
        min_value=1, max_value=64, required=False, default=1
    )
    context_tokens = serializers.IntegerField(
        min_value=1, max_value=10_000_000, required=False, default=8192
    )
    concurrency = serializers.IntegerField(
        min_value=1, max_value=100_000, required=False, default=8
    )


class FitOutput(serializers.Serializer[Any]):
    """Whether a model fits; figures are of one accelerator, null is unknown."""

    model = serializers.CharField()
    accelerator = serializers.CharField()
    accelerator_count = serializers.IntegerField()
    verdict = serializers.ChoiceField(
        choices=["fits", "tight", "too_small", "not_divisible", "unknown"]
    )
    sentence = serializers.CharField()
    memory_bytes = serializers.IntegerField(allow_null=True)
    memory_share = serializers.FloatField()
    usable_bytes = serializers.IntegerField(allow_null=True)
    weight_bytes = serializers.IntegerField(allow_null=True)
    reserve_bytes = serializers.IntegerField(allow_null=True)
    kv_bytes = serializers.IntegerField(allow_null=True)
    kv_bytes_per_sequence = serializers.IntegerField(allow_null=True)
    sequences = serializers.IntegerField(allow_null=True, help_text="Of the whole engine.")
    kv_tokens = serializers.IntegerField(allow_null=True, help_text="Of the whole engine.")
    smallest_tensor_parallel = serializers.IntegerField(
        allow_null=True, help_text="Fewest accelerators over which the load fits."
    )
    source = serializers.CharField()  # type: ignore[assignment]  # a name that DRF uses, too


class FitListOutput(serializers.Serializer[Any]):
    """Answers, by accelerator."""

    items = FitOutput(many=True)


class ModelFitViewSet(viewsets.GenericViewSet[Model]):
    """On which accelerators a model fits: weights, reserve and KV by published formulas."""

    request: ApiRequest
    queryset = Model.objects.none()
    serializer_class = FitOutput
    pagination_class = None
    filter_backends = ()
    view_action = "serving.view_model"
    query_parameters = tuple(FitQuestion().fields)

    @extend_schema(operation_id="model_fit_list", responses=FitListOutput, parameters=[FitQuestion])
    def list(self, request: ApiRequest) -> Response:
        """The answer for each model of accelerators of the catalogue, or for one of them."""
        body = FitQuestion(data=request.query_params.dict())
        body.is_valid(raise_exception=True)
        wanted = dict(body.validated_data)
        accelerator = wanted.pop("accelerator")
        question = selectors.Question(**wanted)
        row = selectors.models_for_viewer(request.user).filter(slug=question.model).first()
        answers = selectors.model_fits(request.user, question, accelerator=accelerator, model=row)
        if answers is None:
            raise InvalidParameterError(
                parameter="model", value=question.model, allowed=_("a model or a preset by name")
            )
        if accelerator and not answers:
            raise InvalidParameterError(
                parameter="accelerator", value=accelerator,
                allowed=_("a model of accelerators by its short name"),
            )  # fmt: skip
        return Response(FitListOutput({"items": [_answered(one) for one in answers]}).data)


def _answered(answer: selectors.ModelFit) -> dict[str, Any]:
    return asdict(answer.fit) | {
        "model": answer.question.model,
        "accelerator": answer.accelerator.slug,
        "accelerator_count": answer.count,
        "sentence": answer.sentence,
        "memory_bytes": answer.accelerator.memory_bytes,
        "memory_share": answer.share,
        "smallest_tensor_parallel": answer.smallest_tensor_parallel,
        "source": "computed from the published shape; the engine measures again when it starts",
    }
