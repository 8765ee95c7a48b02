"""Organisations, tenants, projects: create, rename, suspend, retire."""

from collections.abc import Sequence
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from controlplane.audit import services as audit
from controlplane.common import labels, permissions
from controlplane.operations import outbox
from controlplane.tenancy.errors import DuplicateError, TenantNotActiveError
from controlplane.tenancy.models import Organisation, Project, Tenant, User


@transaction.atomic
def create_organisation(
    *, slug: str, name: str, actor: User | None, reason: str = ""
) -> Organisation:
    """An organisation; raises NotPermittedError, ValidationError or DuplicateError."""
    if actor is not None:
        permissions.require(actor, "tenancy.add_organisation")
    organisation = Organisation(slug=slug, name=name)
    _insert(organisation)
    audit.record(actor=actor, action="organisation.create", subject=organisation, reason=reason)
    return organisation


@transaction.atomic
def create_tenant(
    *,
    organisation_id: UUID,
    slug: str,
    name: str,
    actor: User | None,
    jurisdictions: Sequence[str] = (),
    reason: str = "",
) -> Tenant:
    """An active tenant; raises NotPermittedError, ValidationError or DuplicateError."""
    if actor is not None:
        permissions.require(actor, "tenancy.add_tenant")
    tenant = Tenant(
        organisation_id=organisation_id, slug=slug, name=name, jurisdictions=list(jurisdictions)
    )
    _insert(tenant)
    audit.record(actor=actor, action="tenant.create", subject=tenant, reason=reason)
    outbox.emit("consort.tenant.onboarded", subject=tenant)
    return tenant


@transaction.atomic
def create_project(
    *, tenant_id: UUID, slug: str, name: str, actor: User | None, reason: str = ""
) -> Project:
    """A project of an active tenant.

    Raises NotPermittedError, TenantNotActiveError, ValidationError or DuplicateError.
    """
    tenant = Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)
    if actor is not None:
        permissions.require(actor, "tenancy.add_project", tenant)
    _require_active(tenant)
    project = Project(tenant=tenant, slug=slug, name=name)
    _insert(project)
    audit.record(actor=actor, action="project.create", subject=project, reason=reason)
    return project


@transaction.atomic
def rename_organisation(
    *, organisation_id: UUID, name: str, actor: User, reason: str = ""
) -> Organisation:
    """Change the name people read; slugs and ids stay."""
    row = Organisation.objects.select_for_update(no_key=True).get(pk=organisation_id)
    permissions.require(actor, "tenancy.change_organisation", row)
    _rename(row, name, actor=actor, action="organisation.rename", reason=reason)
    return row


@transaction.atomic
def rename_project(*, project_id: UUID, name: str, actor: User, reason: str = "") -> Project:
    """Change the name people read; slugs and ids stay."""
    row = Project.objects.select_for_update(no_key=True).get(pk=project_id)
    permissions.require(actor, "tenancy.change_project", row)
    _rename(row, name, actor=actor, action="project.rename", reason=reason)
    return row


@transaction.atomic
def change_tenant(
    *,
    tenant_id: UUID,
    actor: User,
    reason: str,
    name: str | None = None,
    jurisdictions: Sequence[str] | None = None,
) -> Tenant:
    """Change the name, or the countries where requests may run (empty: everywhere); None keeps.

    Routers learn the countries with the next pool document.
    """
    tenant = Tenant.objects.select_for_update(no_key=True, of=("self",)).get(pk=tenant_id)
    permissions.require(actor, "tenancy.change_tenant", tenant)
    wanted = {"name": name, "jurisdictions": jurisdictions}
    after = {field: value for field, value in wanted.items() if value is not None}
    before = {field: getattr(tenant, field) for field in after}
    for field, value in after.items():
        setattr(tenant, field, value)
    tenant.full_clean()
    tenant.save(update_fields=[*after, "updated_at"])
    audit.record(
        actor=actor, action="tenant.change", subject=tenant, reason=reason, before=before,
        after=after,
    )  # fmt: skip
    outbox.emit("consort.tenant.changed", subject=tenant, data={"fields": sorted(after)})
    return tenant


def suspend_tenant(*, tenant_id: UUID, actor: User, reason: str) -> Tenant:
    """Turn the tenant's keys off; a second call changes nothing."""
    return _set_state(tenant_id, Tenant.State.SUSPENDED, actor=actor, verb="suspend", reason=reason)


def resume_tenant(*, tenant_id: UUID, actor: User, reason: str) -> Tenant:
    """Turn the tenant's keys on; a second call changes nothing."""
    return _set_state(tenant_id, Tenant.State.ACTIVE, actor=actor, verb="resume", reason=reason)


@transaction.atomic
def retire_tenant(*, tenant_id: UUID, actor: User, reason: str) -> Tenant:
    """Turn the keys off for good; rows stay for usage and cost. A second call changes nothing."""
    tenant = Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)
    permissions.require(actor, "tenancy.delete_tenant", tenant)
    if tenant.state != Tenant.State.RETIRED:
        tenant.state, tenant.retired_at = Tenant.State.RETIRED, timezone.now()
        tenant.save(update_fields=["state", "retired_at", "updated_at"])
        audit.record(actor=actor, action="tenant.retire", subject=tenant, reason=reason)
        outbox.emit("consort.tenant.offboarded", subject=tenant)
    return tenant


@transaction.atomic
def retire_project(*, project_id: UUID, actor: User, reason: str) -> Project:
    """Turn the project's keys off for good; a second call changes nothing."""
    project = Project.objects.select_for_update(no_key=True, of=("self",)).get(pk=project_id)
    permissions.require(actor, "tenancy.delete_project", project)
    if project.retired_at is None:
        project.retired_at = timezone.now()
        project.save(update_fields=["retired_at", "updated_at"])
        audit.record(actor=actor, action="project.retire", subject=project, reason=reason)
    return project


@transaction.atomic
def _set_state(
    tenant_id: UUID, state: Tenant.State, *, actor: User, verb: str, reason: str
) -> Tenant:
    tenant = Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)
    permissions.require(actor, f"tenancy.{verb}_tenant", tenant)
    if tenant.state == state:
        return tenant
    if tenant.state not in {Tenant.State.ACTIVE, Tenant.State.SUSPENDED}:
        raise TenantNotActiveError(tenant=tenant.slug, state=Tenant.State(tenant.state))
    before, tenant.state = tenant.state, state
    tenant.save(update_fields=["state", "updated_at"])
    audit.record(
        actor=actor, action=f"tenant.{verb}", subject=tenant, reason=reason,
        before={"state": before}, after={"state": state},
    )  # fmt: skip
    outbox.emit(f"consort.tenant.{verb.rstrip('e')}ed", subject=tenant)
    return tenant


def _require_active(tenant: Tenant) -> None:
    if tenant.state != Tenant.State.ACTIVE:
        raise TenantNotActiveError(tenant=tenant.slug, state=Tenant.State(tenant.state))


def _rename(
    row: Organisation | Tenant | Project, name: str, *, actor: User, action: str, reason: str
) -> None:
    before, row.name = row.name, name
    row.full_clean()
    row.save(update_fields=["name", "updated_at"])
    audit.record(
        actor=actor, action=action, subject=row, reason=reason,
        before={"name": before}, after={"name": name},
    )  # fmt: skip


def _insert(row: Organisation | Tenant | Project) -> None:
    """Validate and insert; a slug that is taken is a DuplicateError, also when two race for it."""
    row.clean_fields()
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        if "slug" not in str(error):
            raise
        raise DuplicateError(kind=labels.kind_label(row), slug=row.slug) from error
