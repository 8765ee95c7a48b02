"""Errors that are answers: a rule said no, and a person is told which and what to do."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, ClassVar

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

    type_text = str | _StrPromise
else:
    type_text = str


class DomainError(Exception):
    """A business rule said no; title, message and hint may be shown to anyone.

    `facts` fill the placeholders of the message and stand as members in the problem document.
    """

    code: ClassVar[str] = "domain-error"
    status: ClassVar[HTTPStatus] = HTTPStatus.CONFLICT
    title: ClassVar[type_text] = ""
    message: ClassVar[type_text] = ""
    hint: ClassVar[type_text] = ""

    def __init__(self, **facts: object) -> None:
        super().__init__(self.code)
        self.facts: Mapping[str, object] = facts

    def __str__(self) -> str:
        return str(self.message).format(**self.facts)

    @property
    def advice(self) -> str:
        """The hint with its placeholders filled."""
        return str(self.hint).format(**self.facts)

    @property
    def told(self) -> str:
        """Message and advice, for a page."""
        return f"{self} {self.advice}".strip()


class RequestError(DomainError):
    """The request cannot be read."""

    code = "malformed-request"
    status = HTTPStatus.BAD_REQUEST
    title = _("The request cannot be read")
    message = _("The request is malformed, or its host name is not one of this installation.")
    hint = _("Look at the host name, the headers and the body.")


class InvalidParameterError(RequestError):
    """For views that read query parameters themselves."""

    code = "invalid-parameter"
    title = _("The value of a parameter cannot be used")
    message = _("'{value}' is not a value of '{parameter}'.")
    hint = _("Allowed: {allowed}.")
