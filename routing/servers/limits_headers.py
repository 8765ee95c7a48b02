"""Header lines about limits and place: `x-ratelimit-*` as OpenAI's clients read them, and where the
answer was made.

`limit` is what may be sent at once, `remaining` what is left of it at this moment, `reset` the time
until it is whole again; of tenant and key the tighter one is told. Where nothing limits, nothing is
said: no number would be true.
"""

from routing.core.decision import Decision
from routing.producers.tenants import Remaining
from routing.servers import clock
from routing.servers.calls import Call


def lines(call: Call) -> bytes:
    """The limits of a call's tenant and key, each line ended by CRLF; b"" without any."""
    request = call.request
    requests, tokens = call.pool.router.queue.rates_left(
        request.tenant, request.key_id, now=clock.monotonic()
    )
    if requests is None and tokens is None:
        return b""
    return _lines(b"requests", requests) + _lines(b"tokens", tokens)


def _lines(kind: bytes, left: Remaining | None) -> bytes:
    if left is None:
        return b""
    return (
        b"x-ratelimit-limit-%b: %d\r\nx-ratelimit-remaining-%b: %d\r\nx-ratelimit-reset-%b: %b\r\n"
        % (kind, left.limit, kind, left.remaining, kind, _duration(left.reset_seconds))
    )


def _duration(seconds: float) -> bytes:
    """Seconds as `1.5s`, whole minutes before them as `2m3s`."""
    minutes, rest = divmod(round(seconds, 3), 60.0)
    text = f"{rest:.3f}".rstrip("0").rstrip(".")
    return f"{int(minutes)}m{text}s".encode() if minutes else f"{text}s".encode()


def place(call: Call, decision: Decision) -> bytes:
    """Where the destination is; b"" when the document does not say."""
    endpoint = call.pool.endpoints.get(decision.destination or "")
    where = endpoint.spec.jurisdiction if endpoint else None
    if where is None or not (where.isascii() and where.isprintable()):
        return b""
    return b"x-consort-jurisdiction: %b\r\n" % where.encode()
