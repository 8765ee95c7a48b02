"""What the API of tenancy takes in and gives out."""

from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from controlplane.common.serializers import OptionalReasonInput, ReasonInput, VisibleRow
from controlplane.tenancy import selectors
from controlplane.tenancy.models import ApiToken, InferenceKey, Organisation, Project, Tenant
from controlplane.tenancy.models.tree import NAME, SLUG


class NameInput(OptionalReasonInput):
    name = serializers.CharField(max_length=100, validators=[NAME])


class OrganisationInput(NameInput):
    slug = serializers.CharField(max_length=63, validators=[SLUG])


def _jurisdictions(**options: Any) -> serializers.ListField:
    country = serializers.RegexField(
        r"^[A-Z]{2}\Z",
        error_messages={"invalid": _("Use a country code of two capitals, as in KR.")},
    )
    return serializers.ListField(child=country, max_length=250, **options)


class TenantInput(OrganisationInput):
    organisation = VisibleRow(selectors.organisations_for_viewer, source="organisation_id")
    jurisdictions = _jurisdictions(required=False, default=list)


class TenantChangeInput(ReasonInput):
    name = serializers.CharField(max_length=100, validators=[NAME], required=False)
    jurisdictions = _jurisdictions(required=False)


class ProjectInput(OrganisationInput):
    tenant = VisibleRow(selectors.tenants_for_viewer, source="tenant_id")


class InferenceKeyInput(OptionalReasonInput):
    project = VisibleRow(selectors.projects_for_viewer, source="project_id")
    name = serializers.CharField(max_length=100, validators=[NAME])
    models = serializers.ListField(
        child=serializers.CharField(max_length=200), max_length=100, required=False, default=list
    )
    expires_in_days = serializers.IntegerField(
        min_value=1, max_value=365, required=False, allow_null=True, default=None
    )
    highest_priority = serializers.IntegerField(
        min_value=-(2**31),
        max_value=2**31 - 1,
        required=False,
        default=0,
        help_text="Requests may ask for priorities up to it; above 0 is the platform's to give.",
    )


class ApiTokenInput(OptionalReasonInput):
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
            "id", "prefix", "name", "tenant", "project", "models", "expires_at",
            "highest_priority", "revoked_at", "created_at", "updated_at",
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
