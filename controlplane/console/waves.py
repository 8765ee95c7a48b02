"""The waves of a plan as rows of steps, and the steps of the plan itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from controlplane.console import format as fmt
from controlplane.console import words
from controlplane.serving.models import ChangePlan, Wave

STEPS = [Wave.Step.DRAIN, Wave.Step.SWITCH, Wave.Step.START, Wave.Step.READY, Wave.Step.ADD,
         Wave.Step.OBSERVE]  # fmt: skip
WITH_FILES = [Wave.Step.PREFETCH, *STEPS]
"""Of pools that name the files of their model."""


@dataclass(frozen=True, slots=True)
class StepCell:
    """One step of one wave: done, running, waiting, failed or "" (not reached)."""

    state: str
    word: str
    note: str


@dataclass(frozen=True, slots=True)
class WaveRow:
    """A wave with its accelerators, cells in the order of its steps, and its elapsed time."""

    wave: Wave
    names: str
    roles: str
    cells: Sequence[StepCell]
    elapsed: str
    current: bool


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A step of the bar on top: done, current or to come."""

    name: str
    note: str
    state: str


def wave_rows(waves: Sequence[Wave]) -> list[WaveRow]:
    """Rows in the order of the waves."""
    steps = steps_of(waves)
    return [_row(wave, steps) for wave in waves]


def steps_of(waves: Sequence[Wave]) -> list[Wave.Step]:
    """The columns: with files only where a wave brings some or brought some."""
    brings = any(
        wave.step == Wave.Step.PREFETCH or "files" in (wave.detail or {}) for wave in waves
    )
    return WITH_FILES if brings else STEPS


def _row(wave: Wave, steps: Sequence[Wave.Step]) -> WaveRow:
    return WaveRow(
        wave=wave,
        names=", ".join(f"{item.get('hostname')}/{item.get('slot')}" for item in wave.items),
        roles=_roles(wave.items, backwards=wave.backwards),
        cells=[_cell(wave, step, place, steps) for place, step in enumerate(steps)],
        elapsed=_elapsed(wave),
        current=wave.state == Wave.State.RUNNING,
    )


def _roles(items: Sequence[Mapping[str, Any]], *, backwards: bool) -> str:
    pairs = {
        (str(words.role(item.get("from_role"))[1]), str(words.role(item.get("to_role"))[1]))
        for item in items
    }
    return ", ".join(
        f"{after} → {before}" if backwards else f"{before} → {after}"
        for before, after in sorted(pairs)
    )


def _elapsed(wave: Wave) -> str:
    if wave.started_at is None:
        return ""
    return fmt.duration(((wave.ended_at or datetime.now(UTC)) - wave.started_at).total_seconds())


def _cell(wave: Wave, step: str, place: int, steps: Sequence[Wave.Step]) -> StepCell:
    reached = len(steps) if wave.step == Wave.Step.DONE else steps.index(Wave.Step(wave.step))
    seen = wave.detail if isinstance(wave.detail, dict) else {}
    if place < reached:
        return StepCell("done", str(words.look("done").word), _result(step, seen))
    if place > reached or wave.state in (Wave.State.PENDING, Wave.State.SKIPPED):
        return StepCell("", "", "")
    if wave.state == Wave.State.RUNNING:
        return StepCell("running", _since(wave), _progress(step, seen))
    return StepCell(wave.state, str(words.look(wave.state).word), "")


def _since(wave: Wave) -> str:
    if wave.step_started_at is None:
        return str(words.look("running").word)
    return fmt.duration((datetime.now(UTC) - wave.step_started_at).total_seconds())


def _progress(step: str, seen: Mapping[str, Any]) -> str:
    """What the running step waits for, in the words of the rows."""
    left = seen.get("unfinished")
    if step == Wave.Step.DRAIN and isinstance(left, int) and left:
        return ngettext("%(left)d request left", "%(left)d requests left", left) % {"left": left}
    return str(seen.get("waits_for") or "")


def _result(step: str, seen: Mapping[str, Any]) -> str:
    """What a step left behind: requests that were cut off, the document with the engines."""
    cut = seen.get("cut_off")
    if step == Wave.Step.DRAIN and cut:
        return ngettext("%(cut)d request cut off", "%(cut)d requests cut off", cut) % {"cut": cut}
    if step == Wave.Step.PREFETCH and seen.get("files"):
        return _("files counted")
    if step == Wave.Step.ADD and seen.get("document"):
        return _("document %(version)s") % {"version": seen["document"]}
    return ""


def plan_steps(plan: ChangePlan, waves: Sequence[Wave]) -> list[PlanStep]:
    """Select, Plan, Approve, Apply, Observe, Done, with the state of each."""
    here = _place(plan, waves)
    count = sum(len(wave.items) for wave in waves) or len(plan.diff)
    notes = [
        ngettext("%(n)d accelerator", "%(n)d accelerators", count) % {"n": count},
        fmt.clock(plan.created_at),
        _approved_at(plan),
        _applied(plan, waves, running=here == 3),
        _("%(seconds)s each") % {"seconds": fmt.duration(plan.soak_seconds)},
        str(words.look(plan.state).word) if not plan.is_open else "",
    ]
    names = [_("Select"), _("Plan"), _("Approve"), _("Apply"), _("Observe"), _("Done")]
    return [
        PlanStep(name, note, "done" if place < here else "current" if place == here else "")
        for place, (name, note) in enumerate(zip(names, notes, strict=True))
    ]


def _approved_at(plan: ChangePlan) -> str:
    times = [approval.created_at for approval in plan.approvals.all()]
    return fmt.clock(max(times)) if times else ""


def _applied(plan: ChangePlan, waves: Sequence[Wave], *, running: bool) -> str:
    """Which wave it is at, when it was applied, or how many waves there will be."""
    if plan.applied_at and running:
        done = sum(wave.state == Wave.State.SUCCEEDED for wave in waves)
        position = {"done": min(done + 1, len(waves)), "all": len(waves)}
        return _("wave %(done)d of %(all)d") % position
    if plan.applied_at:
        return fmt.clock(plan.applied_at)
    return ngettext("%(n)d wave", "%(n)d waves", len(waves)) % {"n": len(waves)}


def _place(plan: ChangePlan, waves: Sequence[Wave]) -> int:
    if plan.state == ChangePlan.State.DRAFT:
        return 1
    if plan.state == ChangePlan.State.PROPOSED:
        return 2
    if not plan.is_open:
        return 5
    observing = any(
        wave.state == Wave.State.RUNNING and wave.step == Wave.Step.OBSERVE for wave in waves
    )
    return 4 if observing else 3
