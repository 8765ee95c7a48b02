"""Changes of tenancy, one file per noun."""

from controlplane.tenancy.services.credentials import (
    issue_api_token,
    issue_inference_key,
    note_token_use,
    revoke_api_token,
    revoke_inference_key,
)
from controlplane.tenancy.services.people import (
    check_login,
    create_user,
    note_failed_login,
    note_login,
    note_logout,
    set_preferences,
)
from controlplane.tenancy.services.tree import (
    change_tenant,
    create_organisation,
    create_project,
    create_tenant,
    rename_organisation,
    rename_project,
    resume_tenant,
    retire_project,
    retire_tenant,
    suspend_tenant,
)

__all__ = [
    "change_tenant",
    "check_login",
    "create_organisation",
    "create_project",
    "create_tenant",
    "create_user",
    "issue_api_token",
    "issue_inference_key",
    "note_failed_login",
    "note_login",
    "note_logout",
    "note_token_use",
    "rename_organisation",
    "rename_project",
    "resume_tenant",
    "retire_project",
    "retire_tenant",
    "revoke_api_token",
    "revoke_inference_key",
    "set_preferences",
    "suspend_tenant",
]
