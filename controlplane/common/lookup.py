"""Finds rows by what people write down: the id, or a name."""

import uuid
from typing import TypeVar

from django.db.models import Model, Q, QuerySet

M = TypeVar("M", bound=Model)

MOST_NAMESAKES = 10
"""How many rows of one name are looked at; enough to say that it names several."""


def rows_named(
    rows: "QuerySet[M]", text: str, *, by: str | None, first: Q | None = None
) -> list[M]:
    """Rows with this id, or else with this name in the column `by`; at most MOST_NAMESAKES.

    A name means the rows that fit `first` before all others. Several rows are for the caller to
    refuse: nothing may hit the first of them. Without `by` rows have ids only.
    """
    try:
        return list(rows.filter(pk=uuid.UUID(text)))
    except ValueError:
        pass
    if by is None or "\0" in text:
        return []
    namesakes = rows.filter(**{by: text})
    preferred = list(namesakes.filter(first)[:MOST_NAMESAKES]) if first is not None else []
    return preferred or list(namesakes[:MOST_NAMESAKES])
