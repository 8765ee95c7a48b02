"""Write many rows at once with COPY: a tenth of the time of inserts, and every constraint holds."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils import timezone

from controlplane.common.ids import uuid7
from controlplane.common.models import TimestampedModel

Row = Mapping[str, Any]
"""Values by column; all rows of a call have the same columns in the same order."""

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def copy_rows(model: type[TimestampedModel], rows: Sequence[Row]) -> None:
    """Insert rows with a fresh id and the time of now; raises IntegrityError as an insert does."""
    if not rows:
        return
    columns = ["id", "created_at", "updated_at", *rows[0]]
    quote = connection.ops.quote_name
    names = ", ".join(quote(name) for name in columns)
    table = quote(model._meta.db_table)  # noqa: SLF001 - Django's public model API
    stamp = _text(timezone.now())
    lines = (
        "\t".join([str(uuid7()), stamp, stamp, *(_text(value) for value in row.values())])
        for row in rows
    )
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy,
    ):
        copy.write("\n".join(lines) + "\n")


def _text(value: Any) -> str:
    """A value in the text form of COPY."""
    if value is None:
        return "\\N"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        value = json.dumps(value)
    return str(value).translate(_ESCAPES)
