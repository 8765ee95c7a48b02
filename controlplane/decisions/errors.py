"""Answers of the routing pages that are not a yes.

DomainError
├── RouterAwayError        no router of the pool can be asked
├── RouterRefusedError     a router did not take the question
├── ReplayImpossibleError  the record or the document does not allow it
└── DocumentUnknownError   no such version of a pool's document
"""

from http import HTTPStatus

from django.utils.translation import gettext_lazy as _

from controlplane.common.errors import DomainError


class RouterAwayError(DomainError):
    code = "router-away"
    status = HTTPStatus.SERVICE_UNAVAILABLE
    title = _("No router can be asked")
    message = _("No router with pool {pool} answers: {detail}")
    hint = _("Look at the routers page, and ask again when one is in reach.")


class RouterRefusedError(DomainError):
    code = "router-refused"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("The router did not take the question")
    message = _("Router {router} answered: {detail}")
    hint = _("Correct the question.")


class ReplayImpossibleError(DomainError):
    code = "replay-impossible"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("The decision cannot be replayed")
    message = _("{detail}")
    hint = _("Choose a decision that was recorded with its candidates.")


class DocumentUnknownError(DomainError):
    code = "document-unknown"
    status = HTTPStatus.NOT_FOUND
    title = _("There is no such document")
    message = _("Pool {pool} has no document of version {version}.")
    hint = _("The pool's page lists its documents.")
