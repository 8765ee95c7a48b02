"""Buttons of a plan: what fits its state, and why one does not work."""

from datetime import timedelta

import pytest

from controlplane.console import planpage
from controlplane.serving.models import ChangePlan
from controlplane.tenancy.models import User
from tests.controlplane.console.scene import Scene


def words(plan: ChangePlan, viewer: User) -> dict[str, str]:
    return {action.name: action.refusal for action in planpage.actions_of(plan, viewer)}


def test_the_author_cannot_approve_and_is_told_why(scene: Scene) -> None:
    refusals = words(scene.plan, scene.operator)

    assert refusals["approve"] == "Needs another person: you are the author."
    assert refusals["cancel"] == ""


def test_another_person_with_the_role_can(scene: Scene) -> None:
    refusals = words(scene.plan, scene.approver)

    assert (refusals["approve"], refusals["reject"]) == ("", "")
    assert "serving.cancel_changeplan" in refusals["cancel"]


def test_an_expired_plan_cannot_be_approved(scene: Scene) -> None:
    scene.plan.expires_at -= timedelta(days=3)

    assert words(scene.plan, scene.approver)["approve"] == ("The plan has expired. Make it again.")


def test_a_blocked_draft_cannot_be_proposed(scene: Scene) -> None:
    scene.plan.state = ChangePlan.State.DRAFT
    scene.plan.checks = [{"name": "floor", "verdict": "block", "sentence": "no"}]

    assert words(scene.plan, scene.operator)["propose"] == "A check blocks the plan."


@pytest.mark.parametrize(
    ("state", "paused", "names"),
    [
        ("draft", False, ["propose", "cancel"]),
        ("proposed", False, ["approve", "reject", "cancel"]),
        ("approved", False, ["apply", "cancel"]),
        ("applying", False, ["pause", "rollback", "cancel"]),
        ("applying", True, ["resume", "rollback", "cancel"]),
        ("succeeded", False, ["rollback"]),
        ("failed", False, ["rollback"]),
        ("rolled_back", False, []),
        ("cancelled", False, []),
    ],
)
def test_each_phase_has_its_buttons(
    scene: Scene, state: str, paused: bool, names: list[str]
) -> None:
    scene.plan.state = state
    scene.plan.paused_at = scene.plan.created_at if paused else None

    assert list(words(scene.plan, scene.operator)) == names


def test_effects_say_what_is_better_and_keep_the_unknown_unknown(scene: Scene) -> None:
    effects = {effect.name: effect for effect in planpage.context_of(
        scene.plan, scene.operator)["effects"]}  # fmt: skip

    assert effects["Prefill capacity, tokens/s"].change.endswith("41,000 worse")
    assert effects["Decode capacity, tokens/s"].after is None
    assert effects["Decode capacity, tokens/s"].change == ""
    assert effects["decode"].change == "+2"


def test_guards_stand_beside_what_the_last_wave_saw(scene: Scene) -> None:
    guards = planpage.context_of(scene.applying, scene.operator)["guards"]

    assert [(guard.state, guard.share) for guard in guards] == [
        ("met", pytest.approx(0.4 / 1.2)),
        ("met", 0.0),
    ]


def test_a_guard_without_a_number_is_no_data() -> None:
    guard = planpage.Guard("TTFT", "s", None, 1.2)

    assert (guard.state, guard.share) == ("no_data", None)
