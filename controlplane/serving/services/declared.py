"""Routers that an installation declares in a file, as a chart or a Compose file does."""

import json
from pathlib import Path

from django.core.exceptions import ValidationError

from controlplane.serving.models import Router
from controlplane.serving.services.routers import register_router

FIELDS = ("name", "admin_url", "public_url", "token_reference")
MOST_ROUTERS = 200
MOST_BYTES = 1024 * 1024


class DeclarationError(Exception):
    """The file cannot be used; the message says which entry and why."""


def register_declared(file: Path) -> list[str]:
    """Register each router of a JSON list of objects with FIELDS; returns the names that changed.

    Running it again changes nothing. A router that is declared no longer stays as it is: people
    may have registered it by hand. Raises DeclarationError, RouterTokenError or ValidationError.
    """
    changed = []
    for number, row in enumerate(_rows(file)):
        row = _checked(row, number)
        known = Router.objects.filter(name=row["name"]).values(*FIELDS).first()
        if known == {name: value.rstrip("/") for name, value in row.items()}:
            continue
        try:
            register_router(actor=None, **row)
        except ValidationError as error:
            sentences = " ".join(error.messages)
            raise DeclarationError(f"Router {row['name']} of {file}: {sentences}") from error
        changed.append(row["name"])
    return changed


def _rows(file: Path) -> list[object]:
    try:
        content = file.read_bytes()
        rows = json.loads(content) if len(content) <= MOST_BYTES else None
    except (OSError, ValueError) as error:
        raise DeclarationError(f"{file} cannot be read as JSON: {error}") from error
    if not isinstance(rows, list) or len(rows) > MOST_ROUTERS:
        raise DeclarationError(f"{file} must be a list of at most {MOST_ROUTERS} routers.")
    return rows


def _checked(row: object, number: int) -> dict[str, str]:
    if (
        not isinstance(row, dict)
        or set(row) != set(FIELDS)
        or not all(isinstance(value, str) and value for value in row.values())
    ):
        raise DeclarationError(
            f"Entry {number} of the declared routers must have the texts {', '.join(FIELDS)},"
            " and nothing else."
        )
    return row
