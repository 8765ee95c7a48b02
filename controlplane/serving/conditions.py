"""Conditions as plain values: one observed fact each, with status, reason, message and time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

Status = Literal["True", "False", "Unknown"]


def with_condition(
    conditions: Sequence[dict[str, Any]],
    *,
    type: str,  # noqa: A002 - the word of Kubernetes
    status: Status,
    reason: str = "",
    message: str = "",
    at: datetime,
) -> list[dict[str, Any]]:
    """The list with one condition set; its time changes only when its status does."""
    before = next((row for row in conditions if row["type"] == type), None)
    same = before is not None and before["status"] == status
    row = {
        "type": type,
        "status": status,
        "reason": reason,
        "message": message[:500],
        "at": before["at"] if same and before is not None else at.isoformat(),
    }
    others = [other for other in conditions if other["type"] != type]
    return sorted([*others, row], key=lambda condition: str(condition["type"]))
