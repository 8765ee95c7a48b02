"""People, tenants and keys of the demo, made anew or found again."""

import secrets
from dataclasses import dataclass

from controlplane.tenancy.models import InferenceKey, Organisation, Project, Role, Tenant, User
from controlplane.tenancy.services import credentials, people, tree

OPERATOR_ROLES = (
    Role.FLEET_OPERATOR, Role.ROLE_ASSIGNER, Role.ROUTER_ENGINEER, Role.FINANCE, Role.AUDITOR,
    Role.READONLY,
)  # fmt: skip
APPROVER_ROLES = (Role.APPROVER, Role.FINANCE, Role.READONLY)
TENANTS = {"hanbit": "Hanbit Institute", "nuri": "Nuri Bank"}
READER_SCOPES = tuple(
    f"{area}:read"
    for area in (
        "finance", "inventory", "metering", "operations", "serving", "telemetry", "tenancy",
    )
)  # fmt: skip


@dataclass(frozen=True)
class Login:
    """A person who can log in."""

    user: User
    password: str


def login(username: str, full_name: str, roles: tuple[str, ...]) -> Login:
    """The person with a fresh password: it is shown once, on the terminal."""
    password = "-".join(secrets.token_hex(2) for _ in range(4))
    user = User.objects.filter(username=username).first()
    if user is None:
        user = people.create_user(
            username=username, password=password, roles=roles, full_name=full_name
        )
    else:
        user.set_password(password)
        user.save(update_fields=["password", "updated_at"])
    return Login(user, password)


def tenants() -> dict[str, Tenant]:
    """The demo's tenants by short name."""
    organisation = Organisation.objects.filter(slug="public-sector").first()
    if organisation is None:
        organisation = tree.create_organisation(
            slug="public-sector", name="Public sector", actor=None
        )
    found = {tenant.slug: tenant for tenant in Tenant.objects.filter(slug__in=TENANTS)}
    for slug, name in TENANTS.items():
        if slug not in found:
            found[slug] = tree.create_tenant(
                organisation_id=organisation.pk, slug=slug, name=name, actor=None,
                jurisdictions=["KR"],
            )  # fmt: skip
    return found


def project(tenant: Tenant, slug: str, name: str) -> Project:
    """A project of the tenant, made if it is not there."""
    found = Project.objects.filter(tenant=tenant, slug=slug).first()
    return found or tree.create_project(tenant_id=tenant.pk, slug=slug, name=name, actor=None)


def fresh_key(project_row: Project, name: str) -> str:
    """Secret of a key for the project; keys of earlier runs with that name are revoked."""
    for key in InferenceKey.objects.filter(project=project_row, name=name, revoked_at__isnull=True):
        credentials.revoke_inference_key(key_id=key.pk, actor=None, reason="The demo starts again.")
    _, secret = credentials.issue_inference_key(
        project_id=project_row.pk, name=name, actor=None, expires_in_days=30
    )
    return secret


def reader_token(owner: User) -> str:
    """API token that reads what the report needs."""
    _, secret = credentials.issue_api_token(
        owner=owner, name="demo report", scopes=READER_SCOPES, expires_in_days=1
    )
    return secret
