"""A sidecar before one decode engine: prefill there, then decode here.

For gateways that can carry a request to one destination only: the picker names the prefill
endpoints in a header (`x-prefiller-host-port`, first preferred), the gateway sends the request to
the decode endpoint, and the sidecar in its pod runs both legs. Requests without the header pass.
It keeps no keys and no state beyond the requests that run.
"""

from dataclasses import dataclass, field
from pathlib import Path

from routing.core.document import Disaggregation, Limits
from routing.engines.base import Engine
from routing.servers import calls, clock, passing
from routing.servers.errors import ApiError, openai_error_body
from routing.servers.faces.prefillers import Prefillers, host_port
from routing.servers.faces.sidecar_messages import PREFILLER_HEADER
from routing.servers.faces.sidecar_pair import Local, Pair
from routing.servers.failures import ClientAnswerError
from routing.servers.http import Connection, HttpServer
from routing.servers.http_parts import HttpRequest, ServerLimits
from routing.servers.legs import BOOTSTRAP_PORT
from routing.servers.origin import Origin
from routing.servers.upstream import UpstreamPool

PAIR_PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/responses")
"""The APIs whose prefill and decode legs are defined."""
ENGINES_OWN_PATHS = ("/health", "/ping", "/metrics", "/kv_event_sources")
"""What probes, scrapers and pickers ask of an engine behind the sidecar's port."""
MOST_PREFILLERS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SidecarOptions:
    """What a sidecar is told at its start."""

    engine: Origin
    """The decode engine before which it stands."""
    kind: Engine
    prefillers: Path | None = None
    """See `Prefillers`; without it no request is split."""
    accepts_legs: bool = False
    """Decode legs of a router pass. Only where every client comes through a router of ours, which
    refuses such bodies: who names blocks to fetch could read another's prompt."""
    bootstrap_port: int = BOOTSTRAP_PORT
    """Of SGLang, where the list says nothing else."""
    host: str = "127.0.0.1"
    port: int = 0
    limits: Limits = field(default_factory=Limits)
    disaggregation: Disaggregation = field(default_factory=Disaggregation)
    local_prefill_bytes: int | None = None
    """Longest body whose prompt is computed here after prefill endpoints failed; `None` is any."""
    drain_seconds: float = 30.0


class Sidecar:
    """One port before one engine."""

    def __init__(self, options: SidecarOptions) -> None:
        """Raises OSError or HostListError for the list of prefill endpoints."""
        self._options = options
        self._prefillers = Prefillers(options.prefillers, now=clock.monotonic)
        self._upstreams = UpstreamPool()
        body_bytes = options.limits.body_bytes
        self._server = HttpServer(
            self._answer,
            limits=ServerLimits(body_bytes=lambda: body_bytes),
            error_body=openai_error_body,
        )
        self._local = Local(
            engine=options.engine,
            kind=options.kind,
            upstreams=self._upstreams,
            limits=options.limits,
            transfer_seconds=options.disaggregation.transfer_timeout_seconds,
            local_prefill_bytes=options.local_prefill_bytes,
        )
        self.port = 0

    async def start(self) -> None:
        """Open the port. Raises OSError for a busy one."""
        self.port = await self._server.start(self._options.host, self._options.port)

    async def stop(self) -> None:
        """Accept nothing more and let running requests end."""
        await self._server.stop(drain_seconds=self._options.drain_seconds)
        self._upstreams.close()

    async def _answer(self, request: HttpRequest, client: Connection) -> None:
        try:
            await self._serve(request, client)
        except ApiError as error:
            lines = calls.id_line(request.headers) + error.header_lines()
            client.respond(error.status, error.body(request.path), headers=lines)
        except ClientAnswerError as refusal:
            self._local.pass_on(refusal.answer, client)

    async def _serve(self, request: HttpRequest, client: Connection) -> None:
        if request.path not in ENGINES_OWN_PATHS and not passing.is_open(request.path):
            raise ApiError(
                404,
                f"The path {request.path} is not passed to the engine; what manages it is asked at"
                " the engine's own port.",
            )
        if request.method not in passing.METHODS:
            raise ApiError(405, f"{request.path} takes GET and POST, not {request.method}.")
        calls.check_encoding(request)
        named = request.headers.get(PREFILLER_HEADER, b"").strip()
        if named or not self._options.accepts_legs:
            passing.check_body(request.body)
        pair = Pair(self._local, request, client)
        if named and request.method == "POST" and request.path in PAIR_PATHS:
            await pair.run([(one, self._meeting_port(one)) for one in self._allowed(named)])
        else:
            await pair.run([])

    def _meeting_port(self, origin: Origin) -> int:
        return self._prefillers.bootstrap_port(origin) or self._options.bootstrap_port

    def _allowed(self, named: bytes) -> list[Origin]:
        """The prefill endpoints of the header. Raises ApiError 400 or 403."""
        name = PREFILLER_HEADER.decode()
        texts = [part.strip() for part in named.decode("latin-1").split(",") if part.strip()]
        origins = [host_port(text) for text in texts]
        if None in origins or not 0 < len(origins) <= MOST_PREFILLERS:
            raise ApiError(
                400,
                f"The header {name} cannot be read; it holds 1 to {MOST_PREFILLERS} host:port with"
                " commas between them.",
                param=name,
            )
        found = [origin for origin in origins if origin is not None]
        for origin in found:
            if not self._prefillers.allows(origin):
                raise ApiError(
                    403,
                    f"{origin} is no prefill endpoint of this pool; the sidecar's list has those"
                    " that may be named.",
                    code="prefiller-not-allowed",
                    param=name,
                )
        return found
