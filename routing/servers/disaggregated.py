"""The prefill leg of a prefill/decode pair, NIXL form: prefill, then decode with its ticket."""

from routing.engines.base import AnswerError
from routing.servers import attempt as attempts
from routing.servers.attempt import Attempt
from routing.servers.messages import request_message
from routing.servers.state import RouterState
from routing.servers.upstream import Collected, Deadlines, FailureKind, UpstreamError


class LegError(Exception):
    """A leg of an attempt failed at an endpoint, before a byte went to the client."""

    def __init__(
        self, endpoint_id: str, kind: FailureKind, message: str, answer: Collected | None = None
    ) -> None:
        super().__init__(message)
        self.endpoint_id = endpoint_id
        self.kind: FailureKind = kind
        self.message = message
        self.answer = answer
        """The engine's own answer, when it gave one."""


class ClientAnswerError(Exception):
    """The engine refused the client's request itself (4xx); its answer goes to the client."""

    def __init__(self, answer: Collected) -> None:
        super().__init__()
        self.answer = answer


async def compute_prompt(state: RouterState, attempt: Attempt, deadlines: Deadlines) -> bytes:
    """Run the prefill leg and return the ticket for the decode leg, byte for byte.

    Raises LegError (another endpoint may do better) or ClientAnswerError (none will).
    """
    endpoint, call = attempt.prefill, attempt.call
    if endpoint is None:
        raise ValueError("The attempt has no prefill endpoint.")
    answer = Collected()
    body = endpoint.engine.prefill_body(call.body)
    message = request_message(call, endpoint.origin, body)
    try:
        await state.upstreams.run(endpoint.origin, message, answer, deadlines)
    except UpstreamError as error:
        raise LegError(endpoint.spec.id, error.kind, error.message) from error
    if answer.status >= 500:
        raise LegError(
            endpoint.spec.id, "status", f"{endpoint.spec.id} answered {answer.status}.", answer
        )
    if answer.status != 200:
        raise ClientAnswerError(answer)
    try:
        result = endpoint.engine.prefill_answer(answer.body)
    except AnswerError as error:
        raise LegError(endpoint.spec.id, "kv_transfer", str(error)) from error
    attempts.prefill_done(attempt, result.usage)
    return result.kv_transfer_params
