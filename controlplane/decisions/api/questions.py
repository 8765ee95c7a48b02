"""Questions: explain, replay, test. The first two change nothing."""

from typing import Any, get_args

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, viewsets
from rest_framework.response import Response

from controlplane.common import permissions
from controlplane.common.http import ApiRequest
from controlplane.common.serializers import StrictSerializer
from controlplane.decisions import selectors, services
from controlplane.decisions.api.reads import OBJECT, ExplanationOutput, explanation_of
from controlplane.decisions.models import Decision
from controlplane.serving.models import Pool
from routing.core.document import PolicyName

POLICIES = list(get_args(PolicyName))
LANGUAGES = ["en", "ko"]


def _names(**options: Any) -> Any:
    child = serializers.CharField(max_length=200)
    return serializers.ListField(child=child, required=False, max_length=100, **options)


class RouteInput(StrictSerializer):
    """A request by sizes (`prompt_tokens`) or by text (`prompt`), which is not stored."""

    pool = serializers.SlugRelatedField(slug_field="slug", queryset=Pool.objects.all())
    tenant = serializers.CharField(max_length=200)
    project = serializers.CharField(max_length=200, required=False, default="")
    model = serializers.CharField(max_length=200, required=False, default="")
    prompt_tokens = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=10_000_000
    )
    prompt = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=1_000_000, write_only=True
    )
    max_tokens = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=1_000_000
    )
    like = serializers.CharField(
        max_length=250, required=False, default="",
        help_text="Id of a recent decision whose prefix the request shares.",
    )  # fmt: skip
    shared_tokens = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1
    )
    policy = serializers.ChoiceField(choices=POLICIES, required=False, default="")
    force, avoid = _names(default=list), _names(default=list)
    slo_ttft_seconds = serializers.FloatField(
        required=False, allow_null=True, default=None, min_value=0.001
    )
    slo_tpot_seconds = serializers.FloatField(
        required=False, allow_null=True, default=None, min_value=0.0001
    )
    language = serializers.ChoiceField(choices=LANGUAGES, required=False, default="en")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Sizes or text."""
        if not attrs["prompt"] and attrs["prompt_tokens"] is None:
            message = "Give prompt_tokens, or the text of a prompt."
            raise serializers.ValidationError({"prompt_tokens": [message]})
        return attrs


class SentInput(RouteInput):
    """A request that is really sent with an inference key, at the cost of its project."""

    key = serializers.CharField(max_length=300, write_only=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """A request needs its text."""
        if not attrs["prompt"]:
            message = "A request that is sent needs the text of a prompt."
            raise serializers.ValidationError({"prompt": [message]})
        return attrs


class ReplayInput(StrictSerializer):
    """A stored decision, or a record, and what is to be different."""

    decision = serializers.CharField(max_length=250, required=False, default="")
    record = serializers.DictField(required=False, allow_null=True, default=None)
    policy = serializers.ChoiceField(choices=POLICIES, required=False, default="")
    force = serializers.CharField(max_length=200, required=False, default="")
    remove = _names(default=list)
    document_version = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=2**53
    )
    language = serializers.ChoiceField(choices=LANGUAGES, required=False, default="en")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """One of the two."""
        if bool(attrs["decision"]) == bool(attrs["record"]):
            message = "Give the id of a decision, or a record, and not both."
            raise serializers.ValidationError({"decision": [message]})
        return attrs


class ExplainedOutput(serializers.Serializer[Any]):
    """A record with its reason in words."""

    record = serializers.SerializerMethodField()
    explanation = ExplanationOutput()
    router = serializers.CharField(allow_blank=True)

    @extend_schema_field(OBJECT)
    def get_record(self, row: Any) -> dict[str, Any]:
        """As a router writes it."""
        record: dict[str, Any] = row["record"]
        return record


class TestOutput(serializers.Serializer[Any]):
    """What came back; `explained` is null when the router did not record the decision."""

    status = serializers.IntegerField()
    decision_id = serializers.CharField(allow_blank=True)
    router = serializers.CharField()
    seconds = serializers.FloatField()
    text = serializers.CharField()
    usage = serializers.DictField()
    explained = ExplainedOutput(allow_null=True)


def _explained(told: services.Explained) -> dict[str, Any]:
    return {
        "record": told.record,
        "explanation": explanation_of(told.explanation),
        "router": told.router,
    }


def _read(viewset: Any, serializer: type[serializers.Serializer[Any]]) -> dict[str, Any]:
    body = serializer(data=viewset.request.data, context=viewset.get_serializer_context())
    body.is_valid(raise_exception=True)
    values: dict[str, Any] = body.validated_data
    return values


class _Questions(viewsets.GenericViewSet[Decision]):
    request: ApiRequest
    queryset = Decision.objects.none()
    serializer_class = ExplainedOutput
    pagination_class = None
    computations = frozenset({"create"})

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.decisions_for_viewer(self.request.user)


class ExplainViewSet(_Questions):
    """What a router would do with a request at this moment."""

    calls_out = frozenset({"create"})

    @extend_schema(request=RouteInput, responses={200: ExplainedOutput})
    def create(self, request: ApiRequest) -> Response:
        """Explain a request; nothing is sent."""
        values = _read(self, RouteInput)
        language = values.pop("language")
        told = services.explain_route(
            question=services.RouteQuestion(**values), actor=request.user, language=language
        )
        return Response(_explained(told))


class ReplayViewSet(_Questions):
    """A recorded decision, decided again with something changed."""

    @extend_schema(request=ReplayInput, responses={200: ExplainedOutput})
    def create(self, request: ApiRequest) -> Response:
        """Replay under another policy or document, or with endpoints forced or left out."""
        # What another endpoint would have cost tells of the fleet, which tenants do not see.
        permissions.require(request.user, "routing.view_replay")
        values = _read(self, ReplayInput)
        record, decision = values.pop("record"), values.pop("decision")
        if decision:
            self.kwargs[self.lookup_field] = decision
            record = self.get_object().record
        policy = values.pop("policy") or None
        return Response(
            _explained(services.replay_decision(record=record, policy=policy, **values))
        )

    lookup_slug = "decision_id"


class TestViewSet(_Questions):
    """A request that is really sent, explained."""

    __test__ = False
    computations: frozenset[str] = frozenset()
    calls_out = frozenset({"create"})

    @extend_schema(request=SentInput, responses={200: TestOutput})
    def create(self, request: ApiRequest) -> Response:
        """Send a request with an inference key; the text and the key are not stored."""
        values = _read(self, SentInput)
        language, key = values.pop("language"), values.pop("key")
        tested = services.send_test(
            question=services.RouteQuestion(**values), key=key, actor=request.user,
            language=language,
        )  # fmt: skip
        answer = Response(
            {
                "status": tested.status,
                "decision_id": tested.decision_id,
                "router": tested.router,
                "seconds": tested.seconds,
                "text": tested.text,
                "usage": dict(tested.usage),
                "explained": tested.explained and _explained(tested.explained),
            }
        )
        answer.not_kept = {"text": ""}  # type: ignore[attr-defined]  # see api.idempotency
        return answer
