"""Answers of metering that are not a yes.

DomainError
├── GroupingError       groups or granularity that do not exist
└── TooManyRowsError    an answer that would not end
"""

from http import HTTPStatus

from django.utils.translation import gettext_lazy as _

from controlplane.common.errors import DomainError


class GroupingError(DomainError):
    code = "grouping-unknown"
    status = HTTPStatus.BAD_REQUEST
    title = _("Usage cannot be summed like that")
    message = _("'{value}' is not a value of '{parameter}'.")
    hint = _("Allowed: {allowed}.")


class TooManyRowsError(DomainError):
    code = "too-many-rows"
    status = HTTPStatus.BAD_REQUEST
    title = _("The answer would be too long")
    message = _("The answer would have more than {limit} rows.")
    hint = _("Choose a shorter period, a coarser granularity or fewer groups.")
