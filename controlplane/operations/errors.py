"""Rules of operations that can say no."""

from django.utils.translation import gettext_lazy as _

from controlplane.common.errors import DomainError


class OperationLostError(DomainError):
    """Not shown to people: the attempt that meets it just stops."""

    code = "operation-lost"
    title = _("Somebody else took over")
    message = _("Attempt {attempt} of the operation {operation} lost its claim.")
    hint = _("Another worker goes on with it.")


class WorkersLostError(DomainError):
    """What an operation fails with whose workers died one after the other."""

    code = "workers-lost"
    title = _("Workers ended with the work")
    message = _("{lost} workers in a row ended while they worked on it, and none could say why.")
    hint = _(
        "Often memory was short: give workers more of it, or make the work smaller, and retry."
    )


class OperationEndedError(DomainError):
    code = "operation-ended"
    title = _("Operation has ended")
    message = _("Operation {operation} is {state.label}, so it cannot be cancelled.")
    hint = _("Only a pending or running operation can be cancelled.")


class OperationNotFailedError(DomainError):
    code = "operation-not-failed"
    title = _("Operation did not fail")
    message = _("Operation {operation} is {state.label}, so it cannot be retried.")
    hint = _("Only a failed or cancelled operation can be retried.")
