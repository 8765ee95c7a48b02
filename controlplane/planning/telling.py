"""Reasons of stored advice in a person's language."""

from collections.abc import Iterable, Mapping
from typing import Any

from routing.planner.advice import Reason
from routing.planner.words import Language, sentence


def sentences(reasons: Iterable[Mapping[str, Any]], language: str | None) -> list[str]:
    """In their order; English for languages that are not spoken."""
    spoken: Language = "ko" if (language or "en").startswith("ko") else "en"
    return [
        sentence(Reason(code=row["code"], numbers=dict(row.get("numbers") or {})), spoken)
        for row in reasons
    ]
