"""Organisations, tenants, projects, keys and tokens in the API."""

from typing import Any

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.common.serializers import ReasonInput
from controlplane.tenancy import selectors, services
from controlplane.tenancy.models import ApiToken, InferenceKey, Organisation, Project, Tenant
from controlplane.tenancy.serializers import (
    ApiTokenInput,
    ApiTokenOutput,
    InferenceKeyInput,
    InferenceKeyOutput,
    IssuedApiTokenOutput,
    IssuedInferenceKeyOutput,
    NameInput,
    OrganisationInput,
    OrganisationOutput,
    ProjectInput,
    ProjectOutput,
    TenantChangeInput,
    TenantInput,
    TenantOutput,
)


class ListAndRetrieve(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Any]
):
    """Reads, and short ways to answer."""

    request: ApiRequest
    sort_fields = {"slug": "slug", "name": "name", "created_at": "created_at"}

    def read(self, serializer: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The validated body."""
        body = serializer(data=self.request.data, context=self.get_serializer_context())
        body.is_valid(raise_exception=True)
        values: dict[str, Any] = body.validated_data
        return values

    def answer(self, row: Any, *, created: bool = False) -> Response:
        """The row, as every read gives it."""
        return Response(
            self.get_serializer(row).data,
            status=status.HTTP_201_CREATED if created else status.HTTP_200_OK,
        )


class OrganisationViewSet(ListAndRetrieve):
    """Customers or departments; each owns tenants."""

    queryset = Organisation.objects.none()
    serializer_class = OrganisationOutput
    dry_runs = frozenset({"create", "partial_update"})

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.organisations_for_viewer(self.request.user)

    @extend_schema(request=OrganisationInput, responses={201: OrganisationOutput})
    def create(self, request: ApiRequest) -> Response:
        """Create an organisation."""
        row = services.create_organisation(actor=request.user, **self.read(OrganisationInput))
        return self.answer(row, created=True)

    @extend_schema(request=NameInput, responses=OrganisationOutput)
    def partial_update(self, request: ApiRequest, pk: str) -> Response:
        """Change the name; ids and slugs stay."""
        row, body = self.get_object(), self.read(NameInput)
        row = services.rename_organisation(organisation_id=row.pk, actor=request.user, **body)
        return self.answer(row)


class TenantFilter(filters.FilterSet):
    organisation = filters.CharFilter(field_name="organisation__slug")
    state = filters.ChoiceFilter(choices=Tenant.State.choices)

    class Meta:
        model = Tenant
        fields: list[str] = []


class TenantViewSet(ListAndRetrieve):
    """The border nobody looks across."""

    queryset = Tenant.objects.none()
    serializer_class = TenantOutput
    dry_runs = frozenset({"create", "partial_update"})
    filterset_class = TenantFilter
    requires_if_match = True

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.tenants_for_viewer(self.request.user)

    @extend_schema(request=TenantInput, responses={201: TenantOutput})
    def create(self, request: ApiRequest) -> Response:
        """Create an active tenant."""
        row = services.create_tenant(actor=request.user, **self.read(TenantInput))
        return self.answer(row, created=True)

    @extend_schema(request=TenantChangeInput, responses=TenantOutput)
    def partial_update(self, request: ApiRequest, pk: str) -> Response:
        """Change the name or the jurisdictions."""
        row, body = self.get_object(), self.read(TenantChangeInput)
        row = services.change_tenant(tenant_id=row.pk, actor=request.user, **body)
        return self.answer(row)

    @extend_schema(request=ReasonInput, responses={204: None})
    def destroy(self, request: ApiRequest, pk: str) -> Response:
        """Retire the tenant: its keys stop for good, its rows stay."""
        row, body = self.get_object(), self.read(ReasonInput)
        services.retire_tenant(tenant_id=row.pk, actor=request.user, **body)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=ReasonInput, responses=TenantOutput)
    @action(detail=True, methods=["post"])
    def suspend(self, request: ApiRequest, pk: str) -> Response:
        """Turn the tenant's keys off."""
        row, body = self.get_object(), self.read(ReasonInput)
        return self.answer(services.suspend_tenant(tenant_id=row.pk, actor=request.user, **body))

    @extend_schema(request=ReasonInput, responses=TenantOutput)
    @action(detail=True, methods=["post"])
    def resume(self, request: ApiRequest, pk: str) -> Response:
        """Turn the tenant's keys on."""
        row, body = self.get_object(), self.read(ReasonInput)
        return self.answer(services.resume_tenant(tenant_id=row.pk, actor=request.user, **body))


class ProjectFilter(filters.FilterSet):
    tenant = filters.CharFilter(field_name="tenant__slug")

    class Meta:
        model = Project
        fields: list[str] = []


class ProjectViewSet(ListAndRetrieve):
    """Parts of a tenant."""

    queryset = Project.objects.none()
    serializer_class = ProjectOutput
    dry_runs = frozenset({"create", "partial_update"})
    filterset_class = ProjectFilter

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.projects_for_viewer(self.request.user)

    @extend_schema(request=ProjectInput, responses={201: ProjectOutput})
    def create(self, request: ApiRequest) -> Response:
        """Create a project in an active tenant."""
        row = services.create_project(actor=request.user, **self.read(ProjectInput))
        return self.answer(row, created=True)

    @extend_schema(request=NameInput, responses=ProjectOutput)
    def partial_update(self, request: ApiRequest, pk: str) -> Response:
        """Change the name; ids and slugs stay."""
        row, body = self.get_object(), self.read(NameInput)
        row = services.rename_project(project_id=row.pk, actor=request.user, **body)
        return self.answer(row)

    @extend_schema(request=ReasonInput, responses={204: None})
    def destroy(self, request: ApiRequest, pk: str) -> Response:
        """Retire the project: its keys stop for good, its rows stay."""
        row, body = self.get_object(), self.read(ReasonInput)
        services.retire_project(project_id=row.pk, actor=request.user, **body)
        return Response(status=status.HTTP_204_NO_CONTENT)


class InferenceKeyFilter(filters.FilterSet):
    tenant = filters.CharFilter(field_name="tenant__slug")
    project = filters.CharFilter(field_name="project__slug")
    revoked = filters.BooleanFilter(field_name="revoked_at", lookup_expr="isnull", exclude=True)

    class Meta:
        model = InferenceKey
        fields: list[str] = []


class InferenceKeyViewSet(ListAndRetrieve):
    """Keys of the data plane: what clients of models send to the routers."""

    queryset = InferenceKey.objects.none()
    serializer_class = InferenceKeyOutput
    filterset_class = InferenceKeyFilter
    lookup_slug = "prefix"
    sort_fields = {"name": "name", "created_at": "created_at", "expires_at": "expires_at"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.inference_keys_for_viewer(self.request.user)

    @extend_schema(request=InferenceKeyInput, responses={201: IssuedInferenceKeyOutput})
    def create(self, request: ApiRequest) -> Response:
        """Issue a key; the answer is the only place where its secret ever stands."""
        key, secret = services.issue_inference_key(
            actor=request.user, **self.read(InferenceKeyInput)
        )
        body = InferenceKeyOutput(key).data | {"secret": secret}
        return Response(body, status=status.HTTP_201_CREATED)

    @extend_schema(request=ReasonInput, responses=InferenceKeyOutput)
    @action(detail=True, methods=["post"])
    def revoke(self, request: ApiRequest, pk: str) -> Response:
        """Stop the key; routers refuse it with their next document."""
        row, body = self.get_object(), self.read(ReasonInput)
        return self.answer(services.revoke_inference_key(key_id=row.pk, actor=request.user, **body))


class ApiTokenViewSet(ListAndRetrieve):
    """Tokens of the control plane: each acts for its owner, inside its scopes."""

    queryset = ApiToken.objects.none()
    serializer_class = ApiTokenOutput
    lookup_slug = "prefix"
    # Everybody sees their own tokens.
    view_action = None
    sort_fields = {"name": "name", "created_at": "created_at", "expires_at": "expires_at"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.api_tokens_for_viewer(self.request.user)

    @extend_schema(request=ApiTokenInput, responses={201: IssuedApiTokenOutput})
    def create(self, request: ApiRequest) -> Response:
        """Issue a token for oneself; the answer is the only place where its secret ever stands."""
        token, secret = services.issue_api_token(
            owner=request.user, actor=request.user, **self.read(ApiTokenInput)
        )
        body = ApiTokenOutput(token).data | {"secret": secret}
        return Response(body, status=status.HTTP_201_CREATED)

    @extend_schema(request=ReasonInput, responses=ApiTokenOutput)
    @action(detail=True, methods=["post"])
    def revoke(self, request: ApiRequest, pk: str) -> Response:
        """Stop the token at once."""
        row, body = self.get_object(), self.read(ReasonInput)
        return self.answer(services.revoke_api_token(token_id=row.pk, actor=request.user, **body))
