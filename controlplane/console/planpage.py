"""What the page of a change plan shows and which of its buttons work, with reasons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _

from controlplane.common import permissions
from controlplane.console import format as fmt
from controlplane.console import routerpage, words
from controlplane.console import waves as wave_rows
from controlplane.console.freshness import Source
from controlplane.console.selectors import pools as pool_selectors
from controlplane.console.selectors.overview import routers_for
from controlplane.serving.models import ChangePlan, Wave
from controlplane.tenancy.models import User

State = ChangePlan.State


@dataclass(frozen=True, slots=True)
class Action:
    """A button: the address it posts to, its word, and why it does not work ("" if it does)."""

    name: str
    word: str
    tone: str
    refusal: str
    needs_note: bool = False


@dataclass(frozen=True, slots=True)
class Effect:
    """A measure now and as planned; None is unknown."""

    name: str
    before: float | None
    after: float | None
    digits: int
    method: str = ""
    better: int = 0
    """1 if more is better, -1 if less is, 0 if neither."""

    @property
    def change(self) -> str:
        """Difference with its sign and, where one is better, the word for it."""
        if self.before is None or self.after is None or self.before == self.after:
            return ""
        difference = self.after - self.before
        sign = "+" if difference > 0 else "\N{MINUS SIGN}"
        text = f"{sign}{fmt.number(abs(difference), self.digits)}"
        if not self.better:
            return text
        word = _("better") if difference * self.better > 0 else _("worse")
        return f"{text} {word}"

    @property
    def tone(self) -> str:
        """up for better, down for worse."""
        if not self.better or not self.change:
            return ""
        return "up" if ((self.after or 0) - (self.before or 0)) * self.better > 0 else "down"


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard of the plan beside what is measured now."""

    name: str
    unit: str
    now: float | None
    limit: float | None

    @property
    def share(self) -> float | None:
        """Share of the limit that is used up."""
        return None if self.now is None or not self.limit else min(1.0, self.now / self.limit)

    @property
    def state(self) -> str:
        """met, missed or no_data."""
        if self.now is None or self.limit is None:
            return "no_data"
        return "met" if self.now <= self.limit else "missed"


def context_of(plan: ChangePlan, viewer: User) -> dict[str, Any]:
    """Everything the page needs; the number of queries does not depend on the waves."""
    waves = list(plan.waves.order_by("position"))
    began = plan.applied_at or plan.created_at
    routers = routers_for(viewer) if plan.applied_at else []
    version = pool_selectors.newest_version(plan.pool) if plan.applied_at else None
    actions = actions_of(plan, viewer)
    requests, failed = pool_selectors.requests_since(began, pool=plan.pool.slug)
    return {
        "plan": plan,
        "title": title_of(plan),
        "steps": wave_rows.plan_steps(plan, waves),
        "waves": wave_rows.wave_rows(waves),
        "wave_steps": _wave_steps(waves),
        "approvals": list(plan.approvals.select_related("approver")),
        "blocks": [check for check in plan.checks if check.get("verdict") == "block"],
        "check_counts": _counts(plan.checks),
        "pairs": _pairs(plan.checks),
        "effects": _effects(plan),
        "load": plan.effects.get("load"),
        "guards": _guards(plan, waves),
        "requests": requests,
        "failed": failed,
        "router_rows": routerpage.rows_for(routers, pool=plan.pool.slug, version=version),
        "document_version": version,
        "actions": actions,
        "note_needed_for": ", ".join(action.word for action in actions if action.needs_note),
        "expired": plan.state in (State.DRAFT, State.PROPOSED, State.APPROVED)
        and plan.expires_at <= datetime.now(UTC),
        "said": f"{plan.number}: {plan.get_state_display()}",
        "sources": [Source(_("Plan"), plan.updated_at, expected_seconds=86400)],
    }


def _wave_steps(waves: Sequence[Wave]) -> list[str]:
    names = {
        Wave.Step.PREFETCH: _("Files"),
        Wave.Step.DRAIN: _("Drain"),
        Wave.Step.SWITCH: _("Switch"),
        Wave.Step.START: _("Start"),
        Wave.Step.READY: _("Ready"),
        Wave.Step.ADD: _("Added"),
        Wave.Step.OBSERVE: _("Observed"),
    }
    return [names[step] for step in wave_rows.steps_of(waves)]


def title_of(plan: ChangePlan) -> str:
    """What the plan does in few words."""
    hosts = sorted({str(item.get("hostname")) for item in plan.diff})
    listed = ", ".join(hosts[:3]) + ("…" if len(hosts) > 3 else "")
    if not plan.role:
        return _("%(number)s: release %(hosts)s") % {"number": plan.number, "hosts": listed}
    return _("%(number)s: %(hosts)s to %(role)s") % {
        "number": plan.number,
        "hosts": listed,
        "role": plan.get_role_display(),
    }


def actions_of(plan: ChangePlan, viewer: User) -> list[Action]:
    """Buttons that fit the state; those that do not work for this person say why."""
    return [
        Action(name, word, tone, _refusal(plan, viewer, name, permission), needs_note)
        for name, word, tone, permission, needs_note in _BUTTONS.get(_phase(plan), list)()
    ]


def _phase(plan: ChangePlan) -> str:
    if plan.state == State.APPLYING:
        return "paused" if plan.paused_at else "applying"
    return plan.state


def _refusal(plan: ChangePlan, viewer: User, name: str, permission: str) -> str:
    if name in ("approve", "reject") and plan.author_id == viewer.pk:
        return _("Needs another person: you are the author.")
    if not permissions.allows(viewer, permission, plan):
        return _("You need the permission %(action)s.") % {"action": permission}
    return _obstacle(plan, name)


def _obstacle(plan: ChangePlan, name: str) -> str:
    """What about the plan itself is in the way, whoever asks."""
    if name in ("approve", "apply") and plan.expires_at <= datetime.now(UTC):
        return _("The plan has expired. Make it again.")
    if name == "propose" and any(check.get("verdict") == "block" for check in plan.checks):
        return _("A check blocks the plan.")
    if plan.rolling_back and plan.state == State.APPLYING:
        return _("The plan is being rolled back.")
    if name == "cancel" and plan.cancelling:
        return _("The rest is cancelled already; the wave that runs goes on to its end.")
    return ""


_BUTTONS: dict[str, Any] = {
    State.DRAFT: lambda: [
        ("propose", _("Propose"), "primary", "serving.propose_changeplan", False),
        ("cancel", _("Discard"), "danger", "serving.cancel_changeplan", False),
    ],
    State.PROPOSED: lambda: [
        ("approve", _("Approve"), "primary", "serving.approve_changeplan", False),
        ("reject", _("Reject"), "danger", "serving.reject_changeplan", True),
        ("cancel", _("Cancel the plan"), "quiet", "serving.cancel_changeplan", False),
    ],
    State.APPROVED: lambda: [
        ("apply", _("Apply"), "primary", "serving.apply_changeplan", False),
        ("cancel", _("Cancel the plan"), "quiet", "serving.cancel_changeplan", False),
    ],
    "applying": lambda: [
        ("pause", _("Pause after this wave"), "", "serving.pause_changeplan", False),
        ("rollback", _("Roll back"), "danger", "serving.rollback_changeplan", True),
        ("cancel", _("Cancel the rest"), "quiet", "serving.cancel_changeplan", False),
    ],
    "paused": lambda: [
        ("resume", _("Resume"), "primary", "serving.pause_changeplan", False),
        ("rollback", _("Roll back"), "danger", "serving.rollback_changeplan", True),
        ("cancel", _("Cancel the rest"), "quiet", "serving.cancel_changeplan", False),
    ],
    State.SUCCEEDED: lambda: [
        ("rollback", _("Roll back"), "danger", "serving.rollback_changeplan", True)
    ],
    State.FAILED: lambda: [
        ("rollback", _("Roll back"), "danger", "serving.rollback_changeplan", True)
    ],
}
"""Verb, word, tone, permission and whether a note is needed, by the plan's phase."""


def _counts(checks: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    verdicts = [check.get("verdict") for check in checks]
    return {word: verdicts.count(word) for word in ("block", "warn", "pass")}


def _pairs(checks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    for check in checks:
        if check.get("name") == "contracts":
            found: list[Mapping[str, Any]] = check.get("numbers", {}).get("pairs", [])
            return found
    return []


def _effects(plan: ChangePlan) -> list[Effect]:
    """Measures before and after, as the plan stored them."""
    roles = plan.effects.get("roles", {})
    capacity = plan.effects.get("capacity", {})
    rows = [
        Effect(str(words.role(role)[1]), _at(roles, "before", role), _at(roles, "after", role), 0)
        for role in ("prefill", "decode", "both")
    ]
    for key, name in (
        ("prefill_tokens_per_second", _("Prefill capacity, tokens/s")),
        ("decode_tokens_per_second", _("Decode capacity, tokens/s")),
    ):
        before, after = _at(capacity, "before", key), _at(capacity, "after", key)
        rows.append(Effect(name, before, after, 0, "modelled", 1))
    for check in plan.checks:
        rows += _cost_effect(check)
    return rows


def _cost_effect(check: Mapping[str, Any]) -> list[Effect]:
    numbers = check.get("numbers") or {}
    if check.get("name") != "finance" or "before" not in numbers:
        return []
    name = _("Cost per hour, %(currency)s") % {"currency": numbers.get("currency", "")}
    return [Effect(name, _number(numbers["before"]), _number(numbers.get("after")), 2, "", -1)]


def _at(values: Mapping[str, Any], side: str, key: str) -> float | None:
    return _number((values.get(side) or {}).get(key))


def _number(value: object) -> float | None:
    try:
        return None if value is None else float(str(value))
    except ValueError:
        return None


def _guards(plan: ChangePlan, waves: Sequence[Wave]) -> list[Guard]:
    """Guards beside what the wave that was observed last saw; nothing before that."""
    looks = [wave.detail["after"] for wave in waves if wave.detail.get("after")]
    if not looks:
        return []
    seen = looks[-1]
    known = {
        "ttft_p95_seconds": (_("TTFT p95, at least"), "s", seen.get("ttft_p95_at_least")),
        "max_error_share": (_("Failed"), _("share"), seen.get("failed_share")),
    }
    return [Guard(*known[name], limit=plan.guards[name]) for name in known if name in plan.guards]
