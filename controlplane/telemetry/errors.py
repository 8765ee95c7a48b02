"""Answers of telemetry that are not a yes.

DomainError
└── PeriodError    a period that cannot be read
"""

from http import HTTPStatus

from django.utils.translation import gettext_lazy as _

from controlplane.common.errors import DomainError


class PeriodError(DomainError):
    code = "period-not-usable"
    status = HTTPStatus.BAD_REQUEST
    title = _("This period cannot be used")
    message = _("The period from '{start}' to '{end}' cannot be used.")
    hint = _(
        "Give 'from' and 'to' as times with a time zone (2026-11-30T00:00:00Z); 'from' comes first,"
        " and at most {days} days lie between."
    )
