"""How an attempt of a call fails, told apart by who can still do something about it."""

from routing.servers.calls import Call
from routing.servers.upstream import Collected, FailureKind


class LegError(Exception):
    """A leg of an attempt failed at an endpoint; another endpoint may do better."""

    def __init__(
        self, endpoint_id: str, kind: FailureKind, message: str, answer: Collected | None = None
    ) -> None:
        super().__init__(message)
        self.endpoint_id = endpoint_id
        self.kind: FailureKind = kind
        self.message = message
        self.answer = answer
        """The engine's own answer, when it gave one."""

    @property
    def status(self) -> int:
        """For the record: the engine's own, or 503 where there was none."""
        return self.answer.status if self.answer else 503


class BrokenStreamError(LegError):
    """A stream broke after its first token, and `rest` can be asked of another endpoint."""

    def __init__(self, endpoint_id: str, kind: FailureKind, message: str, rest: Call) -> None:
        super().__init__(endpoint_id, kind, message)
        self.rest = rest


class ClientAnswerError(Exception):
    """The engine refused the client's request itself (4xx); its answer goes to the client."""

    def __init__(self, answer: Collected) -> None:
        super().__init__()
        self.answer = answer


class EngineAnswerError(Exception):
    """Every attempt failed and the last engine said why; its answer is passed on unchanged."""

    def __init__(self, answer: Collected) -> None:
        super().__init__()
        self.answer = answer
