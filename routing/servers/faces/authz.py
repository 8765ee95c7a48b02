"""The face for Envoy's ext_authz filter over HTTP: requests in, headers with a destination out.

Envoy repeats the client's request under `PREFIX`, body included. 200 lets it go on with the headers
of `REQUEST_HEADERS`; every other status goes to the client with its body. Nothing of the answer is
seen here, so a pick is held until its end is concluded.
"""

from routing.servers import calls, limits_headers, wishes
from routing.servers.attempt import CLIENT_GONE, Ending
from routing.servers.calls import Call
from routing.servers.errors import ApiError
from routing.servers.faces import carrying
from routing.servers.faces.carrying import DECISION_ID, DESTINATION, PREFILLER, RANK, REQUEST_ID
from routing.servers.faces.picks import Pick, Picks
from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest, Refused
from routing.servers.rewriting import REWRITE_HEADERS

PREFIX = "/pick"
NO_CAPACITY, STANDS_FOR_IT = 503, 424
"""Envoy takes any 5xx for a failure of this filter: the body would be lost, and where it fails open
the request would go to any endpoint, residency or not. So a refusal for want of capacity leaves
here under another status, which Envoy's configuration turns back."""
REQUEST_HEADERS = (DESTINATION, PREFILLER, RANK, REQUEST_ID)
"""Headers of our 200 that Envoy must put on the request."""
READ_HEADERS = tuple(
    sorted(
        name.decode()
        for name in (
            *wishes.READ,
            *REWRITE_HEADERS,
            b"authorization",
            b"x-api-key",
            b"content-type",
            b"content-encoding",
            b"x-request-id",
            b"traceparent",
            b"tracestate",
        )
    )
)
"""Headers of the client's request that Envoy must show; it keeps back those that are not named."""
CLIENT_HEADERS = (
    DECISION_ID,
    "x-consort-jurisdiction",
    *(
        f"x-ratelimit-{what}-{kind}"
        for kind in ("requests", "tokens")
        for what in ("limit", "remaining", "reset")
    ),
)
"""Headers of our 200 that Envoy must put on the answer."""
REFUSAL_HEADERS = (
    *CLIENT_HEADERS,
    "content-type",
    "retry-after",
    "x-llm-d-request-dropped-reason",
    REQUEST_ID,
)
"""Headers of a refusal that Envoy must leave on it."""


class AuthzPort:
    """Answers Envoy's questions."""

    def __init__(self, picks: Picks) -> None:
        self._picks = picks

    def gate(self, headers: dict[bytes, bytes]) -> Refused | None:
        """Refuse a large body without a usable key before it is read."""
        return calls.refusal_of_key(self._picks.state, headers)

    async def __call__(self, request: HttpRequest, client: Connection) -> None:
        """Answer one question; a refusal leaves in the form of its API."""
        path = request.path
        request.path = path.removeprefix(PREFIX)
        try:
            if not path.startswith(PREFIX + "/"):
                raise ApiError(404, f"Questions of a gateway come under {PREFIX}, not {path}.")
            call = self._picks.read(request)
            _check_carried(call, request)
            pick = await self._picks.open(call)
            _answer(pick, call, client)
        except ApiError as error:
            if not error.is_counted:
                self._picks.state.requests.count(error.status)
            headers = calls.id_line(request.headers) + error.header_lines()
            status = STANDS_FOR_IT if error.status == NO_CAPACITY else error.status
            client.respond(status, error.body(request.path), headers=headers)


def _check_carried(call: Call, request: HttpRequest) -> None:
    """Raise ApiError for a request that has to go on with another body than the client's.

    Envoy sends on what the client sent, so neither another model nor a salt, which keeps tenants'
    caches apart, would reach the engine. The status is no 5xx: Envoy takes one for a failure of
    its own, drops the sentence, and where it fails open lets the request through.
    """
    if call.body is request.body or call.body == request.body:
        return
    raise ApiError(
        422,
        "The pool renames the model or sets the tenant's cache salt in the body of this request,"
        " and ext_authz cannot change bodies. Use ext_proc or the router's own port.",
        code="body-not-carried",
    )


def _answer(pick: Pick, call: Call, client: Connection) -> None:
    try:
        headers = _lines(pick, call)
    except ApiError as error:
        error.is_counted = True
        pick.finish(Ending(outcome="error", status=error.status, delivered=True))
        raise
    if client.closed:
        pick.finish(Ending(outcome="aborted", status=CLIENT_GONE, delivered=True))
        return
    client.respond(200, b"", headers=headers)
    pick.hold()


def _lines(pick: Pick, call: Call) -> bytes:
    """Header lines of a 200. Raises ApiError."""
    carried = carrying.request_lines(pick, call).items()
    return b"%b%b%b" % (
        b"".join([b"%b: %b\r\n" % (name.encode(), value) for name, value in carried]),
        limits_headers.place(call, pick.decision),
        limits_headers.lines(call),
    )
