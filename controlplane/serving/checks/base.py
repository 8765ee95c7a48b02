"""The answer of a check, and running the ones that settings name."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from django.conf import settings
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from controlplane.serving.models import ChangePlan

logger = logging.getLogger(__name__)

Verdict = Literal["pass", "warn", "block"]
_ORDER = {"block": 0, "warn": 1, "pass": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What one check found; numbers are JSON-able and unknown ones are None."""

    verdict: Verdict
    sentence: str
    numbers: Mapping[str, Any] = field(default_factory=dict)


Check = Callable[["ChangePlan"], CheckResult]
"""A check reads the plan (its pool, `diff` items, role, floor) and writes nothing."""


def run_checks(plan: "ChangePlan") -> list[dict[str, Any]]:
    """Results of every check that settings name, blocks first.

    A check that cannot be imported or that raises blocks the plan: unknown is never a pass.
    """
    results = [_run(path, plan) for path in settings.PLAN_CHECKS]
    return sorted(results, key=lambda result: _ORDER[result["verdict"]])


def _run(path: str, plan: "ChangePlan") -> dict[str, Any]:
    name = check_name(path)
    try:
        check: Check = import_string(path)
    except ImportError as error:
        logger.warning("Check %s cannot be loaded: %s", path, error)
        return _row(
            name,
            CheckResult(
                verdict="block",
                sentence=_("The check “{name}” cannot be loaded, so its answer is unknown.").format(
                    name=name
                ),
            ),
        )
    try:
        return _row(name, check(plan))
    except Exception:  # edge to checks of other apps: a broken one must block, not hide
        logger.exception("Check %s failed", path)
        sentence = _("The check “{name}” failed, so its answer is unknown.").format(name=name)
        return _row(name, CheckResult(verdict="block", sentence=sentence))


def check_name(path: str) -> str:
    """Short name from a dotted path: its file, or its app when the file is called checks."""
    words = path.split(".")
    return words[-2] if words[-2] != "checks" else words[-3]


def blocking(checks: Sequence[Mapping[str, Any]]) -> str | None:
    """Sentence of the first check that blocks, or None."""
    return next((check["sentence"] for check in checks if check["verdict"] == "block"), None)


def _row(name: str, result: CheckResult) -> dict[str, Any]:
    return {
        "name": name,
        "verdict": result.verdict,
        "sentence": str(result.sentence),
        "numbers": dict(result.numbers),
    }
