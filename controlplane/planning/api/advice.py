"""Advice in the API: with its reasons in words, and the draft of a change plan on request."""

from typing import Any

from django.utils import translation
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.common.reads import LINKS, OBJECT
from controlplane.common.serializers import OptionalReasonInput
from controlplane.planning import selectors, services
from controlplane.planning.api.shared import Reads
from controlplane.planning.models import Advice
from controlplane.planning.telling import sentences


class AdviceOutput(serializers.ModelSerializer[Advice]):
    """What to do with a pool and why; `change_plan` is the draft made from it, if any."""

    pool = serializers.CharField(source="name")
    run = serializers.UUIDField(source="run_id", allow_null=True)
    sentences = serializers.SerializerMethodField()
    content = serializers.SerializerMethodField()
    error_band = serializers.SerializerMethodField()
    change_plan = serializers.CharField(source="change_plan.number", allow_null=True, default=None)
    links = serializers.SerializerMethodField()

    class Meta:
        model = Advice
        fields = read_only_fields = [
            "id", "pool", "run", "verdict", "gain", "sentences", "content", "error_band",
            "is_standing", "measured_from", "measured_to", "change_plan", "created_at",
            "updated_at", "links",
        ]  # fmt: skip

    @extend_schema_field({"type": "array", "items": {"type": "string"}})
    def get_sentences(self, row: Advice) -> list[str]:
        """Reasons in the language of the request."""
        return sentences(row.content["reasons"], translation.get_language())

    @extend_schema_field(OBJECT)
    def get_content(self, row: Advice) -> dict[str, Any]:
        """The advised option, the alternatives, and what each was judged by."""
        content: dict[str, Any] = row.content
        return content

    @extend_schema_field(OBJECT)
    def get_error_band(self, row: Advice) -> dict[str, Any]:
        """Median relative errors of the simulator, with their source."""
        band: dict[str, Any] = row.error_band
        return band

    @extend_schema_field(LINKS)
    def get_links(self, row: Advice) -> dict[str, str]:
        """Addresses of the advice and of what belongs to it."""
        own = f"/api/v1/advice/{row.pk}"
        links = {"self": own, "make_change_plan": f"{own}/make-change-plan"}
        if row.change_plan_id is not None:
            links["change_plan"] = f"/api/v1/change-plans/{row.change_plan_id}"
        if row.run_id is not None:
            links["run"] = f"/api/v1/scenario-runs/{row.run_id}"
        return links


class AdviceFilter(filters.FilterSet):
    run = filters.UUIDFilter(field_name="run")
    pool = filters.CharFilter(field_name="name")
    verdict = filters.ChoiceFilter(choices=Advice.Verdict.choices)
    is_standing = filters.BooleanFilter()

    class Meta:
        model = Advice
        fields: list[str] = []


class AdviceViewSet(Reads):
    """Role splits with their evidence, latest first."""

    queryset = Advice.objects.none()
    serializer_class = AdviceOutput
    filterset_class = AdviceFilter

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.advice_for_viewer(self.request.user)

    @extend_schema(request=OptionalReasonInput, responses=AdviceOutput)
    @action(detail=True, methods=["post"], url_path="make-change-plan")
    def make_change_plan(self, request: ApiRequest, pk: str) -> Response:
        """Draft the next step as a change plan; the link `change_plan` names it."""
        row, body = self.get_object(), self.read(OptionalReasonInput)
        services.make_change_plan(advice_id=row.pk, actor=request.user, **body)
        return self.answer(row)
