"""Which tenant a row or a table belongs to, without knowing the table."""

from typing import Any
from uuid import UUID

from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model


def tenant_path(model: type[Model]) -> str | None:
    """ORM path from a table to the tenant's id, or None if its rows belong to no tenant."""
    if model._meta.label == "tenancy.Tenant":  # noqa: SLF001 - Django's public model API
        return "pk"
    for name, path in (("tenant", "tenant_id"), ("project", "project__tenant_id")):
        if has_field(model, name):
            return path
    return None


def tenant_id_of(row: Model | None) -> UUID | None:
    """Id of the tenant that a row belongs to; None for rows of the platform."""
    # `__class__`, because the user of a request is a lazy wrapper around the row.
    path = tenant_path(row.__class__) if row is not None else None
    value: Any = row
    for name in path.split("__") if path else ():
        value = getattr(value, name, None)
    return value if path else None


def has_field(model: type[Model], name: str) -> bool:
    """True if the table has a column or relation of this name."""
    try:
        model._meta.get_field(name)  # noqa: SLF001 - Django's public model API
    except FieldDoesNotExist:
        return False
    return True
