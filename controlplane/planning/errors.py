"""Rules of planning that can say no."""

from http import HTTPStatus

from django.utils.translation import gettext_lazy as _

from controlplane.common.errors import DomainError


class ScenarioInvalidError(DomainError):
    code = "scenario-invalid"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("The scenario cannot be planned")
    message = _("The scenario cannot be planned: {detail}")
    hint = _("Change the value that is named and try again.")


class FleetEmptyError(DomainError):
    code = "fleet-empty"
    title = _("No accelerators to plan with")
    message = _("Pool {pool} holds no accelerator that is ready, and none is idle.")
    hint = _("Add nodes, or make the ones in maintenance ready.")


class ScenarioRetiredError(DomainError):
    code = "scenario-retired"
    title = _("Scenario is retired")
    message = _("Scenario {scenario} is retired and is not run any more.")
    hint = _("Make a new scenario.")


class TooManyRunsError(DomainError):
    code = "too-many-runs"
    title = _("Too many runs at once")
    message = _("{open} runs have not ended; at most {allowed} may be open.")
    hint = _("Wait until one ends, or cancel one.")


class RunEndedError(DomainError):
    code = "run-ended"
    title = _("Run has ended")
    message = _("This run is {state.label}, so it cannot be cancelled.")
    hint = _("Only a pending or running run can be cancelled.")


class AdviceWithoutPoolError(DomainError):
    code = "advice-without-pool"
    title = _("No pool to change")
    message = _("The advice is about “{pool}”, which is not a pool of this installation.")
    hint = _("Make a scenario from the fleet as it is to get advice that can be planned.")


class AdviceNothingToDoError(DomainError):
    code = "advice-nothing-to-do"
    title = _("Nothing to change")
    message = _("Pool {pool} has the roles of this advice already, or should keep its own.")
    hint = _("Run the scenario again when load or fleet have changed.")


class AdviceNotPossibleError(DomainError):
    code = "advice-not-possible"
    title = _("The advice cannot be planned")
    message = _("Group {group} has {there} accelerators for pool {pool} now; the advice needs"
                " {needed}.")  # fmt: skip
    hint = _("The fleet has changed, or another pool must release some first. Run the scenario"
             " again.")  # fmt: skip


class AdviceTooWideError(DomainError):
    code = "advice-too-wide"
    title = _("Engines of several accelerators")
    message = _("The advice needs engines of {width} accelerators; change plans start engines of"
                " one.")  # fmt: skip
    hint = _("Deploy such engines yourself and register them as static ones.")


class TooManyRacesError(DomainError):
    code = "too-many-races"
    title = _("Too many races at once")
    message = _("{allowed} races run, and that is the most that may.")
    hint = _("Wait until one ends; a race that nobody watches ends after ten minutes.")


class RaceNotRunningError(DomainError):
    code = "race-not-running"
    title = _("No race runs")
    message = _("No race of yours runs.")
    hint = _("Start one.")


class RaceRateError(DomainError):
    code = "race-rate"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Rate out of bounds")
    message = _("A race can send {least} to {most} requests a second, not {rate}.")
    hint = _("Choose a rate between the two.")


class RaceLostError(DomainError):
    code = "race-lost"
    title = _("The worker is gone")
    message = _("The worker that simulated the race ended, and the pools with it.")
    hint = _("Start the race again.")
