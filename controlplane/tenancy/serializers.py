"""What the API of tenancy takes in and gives out."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.common.serializers import StrictSerializer
from controlplane.tenancy import selectors
from controlplane.tenancy.models import ApiToken, InferenceKey, Organisation, Project, Tenant
from controlplane.tenancy.models.tree import NAME, SLUG


@extend_schema_field(OpenApiTypes.STR)
class VisibleRow(serializers.SlugRelatedField[Any]):
    """A row by slug, among those that the caller may see; gives its id."""

    def __init__(self, selector: Any, **options: Any) -> None:
        self.selector = selector
        super().__init__(slug_field="slug", **options)

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return self.selector(self.context["request"].user)

    def to_internal_value(self, data: Any) -> Any:
        """Id of the row."""
        return super().to_internal_value(data).pk


class WithReason(StrictSerializer):
    change_reason = serializers.CharField(
        max_length=200, source="reason", required=False, default="", allow_blank=True
    )


class NameInput(WithReason):
    name = serializers.CharField(max_length=100, validators=[NAME])


class OrganisationInput(NameInput):
    slug = serializers.CharField(max_length=63, validators=[SLUG])


def _jurisdictions(**options: Any) -> serializers.ListField:
    country = serializers.RegexField(
        r"^[A-Z]{2}$", error_messages={"invalid": "Use a country code of two capitals, as in KR."}
    )
    return serializers.ListField(child=country, max_length=250, **options)


class TenantInput(OrganisationInput):
    organisation = VisibleRow(selectors.organisations_for_viewer, source="organisation_id")
    jurisdictions = _jurisdictions(required=False, default=list)


class TenantChangeInput(StrictSerializer):
    name = serializers.CharField(max_length=100, validators=[NAME], required=False)
    jurisdictions = _jurisdictions(required=False)
    change_reason = serializers.CharField(max_length=200, source="reason")


class ProjectInput(OrganisationInput):
    tenant = VisibleRow(selectors.tenants_for_viewer, source="tenant_id")


class InferenceKeyInput(WithReason):
    project = serializers.PrimaryKeyRelatedField[Any](
        queryset=Project.objects.none(), source="project_id"
    )
    name = serializers.CharField(max_length=100, validators=[NAME])
    models = serializers.ListField(
        child=serializers.CharField(max_length=200), max_length=100, required=False, default=list
    )
    expires_in_days = serializers.IntegerField(
        min_value=1, max_value=365, required=False, allow_null=True, default=None
    )

    def get_fields(self) -> dict[str, Any]:
        """Projects among those that the caller may see."""
        fields = super().get_fields()
        request = self.context.get("request")
        if request is not None:
            rows = selectors.projects_for_viewer(request.user)
            fields["project"] = serializers.PrimaryKeyRelatedField(
                queryset=rows, source="project_id"
            )
        return fields

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The service wants the id."""
        return attrs | {"project_id": attrs["project_id"].pk}


class ApiTokenInput(StrictSerializer):
    name = serializers.CharField(max_length=100, validators=[NAME])
    scopes = serializers.ListField(
        child=serializers.CharField(max_length=32), min_length=1, max_length=50
    )
    expires_in_days = serializers.IntegerField(min_value=1, max_value=365, default=90)
    allowed_networks = serializers.ListField(
        child=serializers.CharField(max_length=43), max_length=50, required=False, default=list
    )


class OrganisationOutput(serializers.ModelSerializer[Organisation]):
    class Meta:
        model = Organisation
        fields = ["id", "slug", "name", "created_at", "updated_at"]
        read_only_fields = fields


class TenantOutput(serializers.ModelSerializer[Tenant]):
    organisation = serializers.CharField(source="organisation.slug")

    class Meta:
        model = Tenant
        fields = [
            "id", "slug", "name", "organisation", "state", "jurisdictions", "retired_at",
            "created_at", "updated_at",
        ]  # fmt: skip
        read_only_fields = fields


class ProjectOutput(serializers.ModelSerializer[Project]):
    tenant = serializers.CharField(source="tenant.slug")

    class Meta:
        model = Project
        fields = ["id", "slug", "name", "tenant", "retired_at", "created_at", "updated_at"]
        read_only_fields = fields


class InferenceKeyOutput(serializers.ModelSerializer[InferenceKey]):
    tenant = serializers.CharField(source="tenant.slug")
    project = serializers.CharField(source="project.slug")

    class Meta:
        model = InferenceKey
        fields = [
            "id", "prefix", "name", "tenant", "project", "models", "expires_at", "revoked_at",
            "created_at", "updated_at",
        ]  # fmt: skip
        read_only_fields = fields


class IssuedInferenceKeyOutput(InferenceKeyOutput):
    secret = serializers.CharField(
        allow_null=True, help_text="Shown once; null in a repeated answer."
    )

    class Meta(InferenceKeyOutput.Meta):
        fields = [*InferenceKeyOutput.Meta.fields, "secret"]
        read_only_fields = fields


class ApiTokenOutput(serializers.ModelSerializer[ApiToken]):
    owner = serializers.CharField(source="owner.username")

    class Meta:
        model = ApiToken
        fields = [
            "id", "prefix", "name", "owner", "scopes", "allowed_networks", "expires_at",
            "revoked_at", "last_used_at", "last_used_address", "created_at", "updated_at",
        ]  # fmt: skip
        read_only_fields = fields


class IssuedApiTokenOutput(ApiTokenOutput):
    secret = serializers.CharField(
        allow_null=True, help_text="Shown once; null in a repeated answer."
    )

    class Meta(ApiTokenOutput.Meta):
        fields = [*ApiTokenOutput.Meta.fields, "secret"]
        read_only_fields = fields
