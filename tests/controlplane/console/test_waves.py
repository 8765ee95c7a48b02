"""Waves as rows of steps, and the step bar of a plan."""

from controlplane.console import waves
from controlplane.serving.models import Wave
from tests.controlplane.console.scene import Scene


def test_a_finished_wave_is_done_in_every_step_and_a_running_one_shows_what_is_left(
    scene: Scene,
) -> None:
    first, second = waves.wave_rows(list(scene.applying.waves.order_by("position")))

    assert [cell.state for cell in first.cells] == ["done"] * 6
    assert first.cells[4].note == "document 130"
    assert [cell.state for cell in second.cells] == ["running", "", "", "", "", ""]
    assert second.cells[0].note == "37 requests left"
    assert second.current
    assert (second.names, second.roles) == ("gpu-11/1", "prefill → decode")


def test_a_wave_that_waits_says_for_what(scene: Scene) -> None:
    wave = scene.applying.waves.get(position=2)
    wave.step, wave.detail = Wave.Step.ADD, {"waits_for": "Not on version 9 yet: router-b."}

    row = waves.wave_rows([wave])[0]

    assert row.cells[4].note == "Not on version 9 yet: router-b."


def test_a_failed_wave_shows_where_it_failed(scene: Scene) -> None:
    wave = scene.applying.waves.get(position=2)
    wave.state, wave.step = Wave.State.FAILED, Wave.Step.READY

    assert [cell.state for cell in waves.wave_rows([wave])[0].cells] == [
        "done", "done", "done", "failed", "", "",
    ]  # fmt: skip


def test_a_wave_that_goes_backwards_shows_the_roles_turned(scene: Scene) -> None:
    wave = scene.applying.waves.get(position=2)
    wave.backwards = True

    assert waves.wave_rows([wave])[0].roles == "decode → prefill"


def test_the_step_bar_names_the_current_step(scene: Scene) -> None:
    proposed = waves.plan_steps(scene.plan, list(scene.plan.waves.all()))
    applying = waves.plan_steps(scene.applying, list(scene.applying.waves.order_by("position")))

    assert [step.name for step in proposed if step.state == "current"] == ["Approve"]
    assert [step.name for step in applying if step.state == "current"] == ["Apply"]
    assert applying[3].note == "wave 2 of 2"


def test_observing_and_the_end_have_steps_of_their_own(scene: Scene) -> None:
    scene.applying.waves.filter(position=2).update(step=Wave.Step.OBSERVE)
    observing = waves.plan_steps(scene.applying, list(scene.applying.waves.order_by("position")))
    scene.applying.state = "succeeded"
    ended = waves.plan_steps(scene.applying, list(scene.applying.waves.order_by("position")))

    assert [step.name for step in observing if step.state == "current"] == ["Observe"]
    assert [step.name for step in ended if step.state == "current"] == ["Done"]
