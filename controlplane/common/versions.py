"""Which version of a row somebody has seen: the tag of `ETag` and `If-Match`.

The part before the dot stands for the last write (`updated_at`), the part behind it for the last
observation, so that what is merely observed never defeats an edit.
"""

from datetime import datetime
from typing import Any, TypeVar

from django.db.models import Model

M = TypeVar("M", bound=Model)
OBSERVED = ("observed_at", "observed_generation")


def tag_of(row: Model) -> str | None:
    """`W/"<version>.<observation>"`; None for rows that do not know when they were written."""
    written = getattr(row, "updated_at", None)
    if written is None:
        return None
    observed = next(
        (value for name in OBSERVED if (value := getattr(row, name, None)) is not None), 0
    )
    return f'W/"{_number(written)}.{_number(observed)}"'


def version_of(tag: str) -> str:
    """The part that counts writes: `W/"12.3381"`, `"12"` and `W/"12"` all give "12"."""
    return tag.strip().removeprefix("W/").strip('"').partition(".")[0]


def latest(row: M, *, lock: bool = False) -> M | None:
    """The row as it is in the database, locked until the end of the transaction if wanted."""
    rows = type(row)._base_manager.filter(pk=row.pk)  # noqa: SLF001 - Django's public model API
    return (rows.select_for_update(no_key=True, of=("self",)) if lock else rows).first()


def _number(value: Any) -> int:
    if isinstance(value, datetime):
        return int(value.timestamp() * 1_000_000)
    return int(value)
