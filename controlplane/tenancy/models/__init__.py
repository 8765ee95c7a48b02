"""Tables of tenancy, one file per noun."""

from controlplane.tenancy.models.credentials import ApiToken, InferenceKey
from controlplane.tenancy.models.people import Role, Theme, User
from controlplane.tenancy.models.tree import Organisation, Project, Tenant

__all__ = ["ApiToken", "InferenceKey", "Organisation", "Project", "Role", "Tenant", "Theme", "User"]
