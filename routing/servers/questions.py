"""How one of several processes answers what its supervisor passes on from the admin port."""

import logging

import msgspec

from routing.core.document import PoolDocument, parse_document
from routing.servers.admin import AdminPort
from routing.servers.channel import Question, Reply
from routing.servers.errors import ApiError, problem
from routing.servers.http_parts import HttpRequest
from routing.servers.reservations import PATHS, Reservations
from routing.servers.shelf import document_sha256
from routing.servers.state import RouterState

logger = logging.getLogger(__name__)

PREPARE = "/internal/document/prepare"
COMMIT = "/internal/document/commit"
METRICS = "/internal/metrics"


class Commitment(msgspec.Struct, frozen=True, kw_only=True):
    """A document that was prepared is to be served."""

    sha256: str
    drained: list[tuple[str, str]]


class Questions:
    """One per process; keeps a document between its two steps."""

    def __init__(self, state: RouterState, reservations: Reservations) -> None:
        self._state = state
        self._reservations = reservations
        self._admin = AdminPort(state, spool=None, token=b"")
        self._prepared: tuple[str, PoolDocument] | None = None

    def reply(self, question: Question) -> Reply:
        """Answer; a failure is an answer of 500, so that nobody waits for it."""
        try:
            status, body = self._answer(question)
        except Exception:
            logger.exception("A question for %s failed.", question.path)
            status, body = 500, problem("failed", f"{question.path} failed in this process.")
        return Reply(number=question.number, status=status, body=body)

    def _answer(self, question: Question) -> tuple[int, bytes]:
        if question.path == PREPARE:
            return self._prepare(question.body)
        if question.path == COMMIT:
            return self._commit(msgspec.msgpack.decode(question.body, type=Commitment))
        if question.path in PATHS:
            return self._settle(question)
        if question.path == METRICS:
            return 200, self._admin.metrics_page()
        return self._admin.answer(_request(question))

    def _settle(self, question: Question) -> tuple[int, bytes]:
        """A client asked another process for a reservation of this one."""
        try:
            return 200, self._reservations.settle(_request(question))
        except ApiError as error:
            return error.status, error.body()

    def _prepare(self, raw: bytes) -> tuple[int, bytes]:
        """Everything that can go wrong with a document goes wrong here."""
        document = parse_document(raw)
        self._prepared = (document_sha256(document), document)
        return 200, b""

    def _commit(self, wanted: Commitment) -> tuple[int, bytes]:
        prepared, self._prepared = self._prepared, None
        if prepared is None or prepared[0] != wanted.sha256:
            return 409, problem("not-prepared", "Another document was prepared.")
        self._state.directory.install(prepared[1], drained=set(wanted.drained))
        return 200, b""


def _request(question: Question) -> HttpRequest:
    return HttpRequest(
        method=question.method,
        path=question.path,
        query=question.query,
        headers={b"x-api-key": question.secret},
        body=question.body,
    )
