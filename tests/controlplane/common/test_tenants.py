"""Which tenant a row belongs to."""

import pytest

from controlplane.common.tenants import tenant_id_of, tenant_path
from controlplane.operations.models import Lease
from controlplane.tenancy.models import InferenceKey, Organisation, Project, Tenant
from tests.factories import make_inference_key, make_organisation, make_project, make_tenant


@pytest.mark.parametrize(
    ("model", "path"),
    [(Tenant, "pk"), (Project, "tenant_id"), (InferenceKey, "tenant_id"), (Organisation, None),
     (Lease, None)],
)  # fmt: skip
def test_a_table_has_one_path_to_its_tenant_or_none(model: type, path: str | None) -> None:
    assert tenant_path(model) == path


@pytest.mark.django_db
def test_a_row_has_one_tenant_or_none() -> None:
    tenant = make_tenant()
    project = make_project(tenant=tenant)
    key, _secret = make_inference_key(project=project)

    assert {tenant_id_of(row) for row in (tenant, project, key)} == {tenant.pk}
    assert tenant_id_of(make_organisation()) is None
    assert tenant_id_of(None) is None
