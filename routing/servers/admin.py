"""The admin port: pool documents in, state, usage segments and decisions out. Bearer token."""

import hmac
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, unquote

import msgspec

from routing.core.document import DocumentError
from routing.servers import clock, effective_limits, metrics, whatif
from routing.servers.documents import LoadedPool
from routing.servers.errors import problem
from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest, Refused
from routing.servers.shelf import VersionNotNewerError
from routing.servers.spool import AcknowledgeError, UsageSpool
from routing.servers.state import RouterState

Answer = tuple[int, bytes]
Route = Callable[["AdminPort", HttpRequest, str], Answer]
OPEN_PATHS = ("/livez", "/readyz", "/metrics")
MAX_LIMIT = 1000


class _ResetRequest(msgspec.Struct, forbid_unknown_fields=True):
    pool: str


class AdminPort:
    """Answers requests of the admin port."""

    def __init__(self, state: RouterState, *, spool: UsageSpool | None, token: bytes) -> None:
        """Without a spool, as in one of several processes, usage is not served here."""
        self._state = state
        self._spool = spool
        self._token = token

    async def __call__(self, request: HttpRequest, client: Connection) -> None:
        """Answer one request. Probes and metrics need no token: they name no key and no prompt."""
        if request.path in OPEN_PATHS:
            self._answer_open(request, client)
            return
        refused = self.gate(request.headers)
        if refused:
            client.respond(*refused, headers=b"www-authenticate: Bearer\r\n")
            return
        status, body = self.answer(request)
        client.respond(status, body)

    def gate(self, headers: dict[bytes, bytes]) -> Refused | None:
        """Refuse whoever does not hold the token."""
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token):
            return None
        return 401, problem("not-authorized", "The admin port needs 'Authorization: Bearer TOKEN'.")

    def answer(self, request: HttpRequest) -> Answer:
        """Status and body for a request that may be made."""
        methods = []
        for method, pattern, route in _ROUTES:
            match = pattern.fullmatch(request.path)
            if match and method == request.method:
                argument = unquote(match[1]) if pattern.groups else ""
                return route(self, request, argument)
            if match:
                methods.append(method)
        if methods:
            allowed = ", ".join(methods)
            detail = f"{request.path} takes {allowed}, not {request.method}."
            return 405, problem("method-not-allowed", detail, allowed=methods)
        return 404, problem("not-found", f"The admin port has no path {request.path}.")

    # Probes and metrics.

    def _answer_open(self, request: HttpRequest, client: Connection) -> None:
        if request.path == "/livez":
            client.respond(200, b"ok", content_type=b"text/plain")
        elif request.path == "/metrics":
            client.respond(200, self.metrics_page(), content_type=metrics.CONTENT_TYPE)
        else:
            status, body = self._readiness(is_verbose="verbose" in request.query)
            client.respond(status, body, content_type=b"text/plain; charset=utf-8")

    def metrics_page(self) -> bytes:
        """Everything in Prometheus form."""
        state = self._state
        spool = state.spool.state()
        state.metrics.spool_pending.set(spool.pending_segments)
        state.metrics.dropped_segments(spool.dropped_segments)
        for name, pool in state.directory.pools.items():
            state.metrics.documents.labels(name).set(pool.document.version)
            state.metrics.running.labels(name).set(pool.running)
            state.metrics.queued.labels(name).set(len(pool.router.queue))
            state.metrics.queued_bytes.labels(name).set(pool.router.queue.order.waiting_bytes)
            for policy, sums in pool.router.shadows.describe().items():
                state.metrics.shadow(name, policy, sums)
            for speed_class, errors in pool.router.speeds.errors().items():
                state.metrics.prediction(name, speed_class, errors)
        caches = {name: pool.router.caches for name, pool in state.directory.pools.items()}
        state.metrics.caches(caches, now=clock.monotonic())
        return state.metrics.page()

    def _readiness(self, *, is_verbose: bool) -> Answer:
        state = self._state
        spool = state.spool.state()
        checks = {
            "document loaded": bool(state.directory.pools),
            "not draining": not state.is_draining,
        }
        is_ready = all(checks.values())
        if not is_verbose:
            return (200, b"ok") if is_ready else (503, b"not ready")
        checks["usage spool has room"] = spool.dropped_segments == 0
        lines = [f"{'ok ' if good else 'NOT'} {name}" for name, good in checks.items()]
        return (200 if is_ready else 503), "\n".join(lines).encode() + b"\n"

    # Documents.

    def put_document(self, request: HttpRequest, _: str) -> Answer:
        """Load a document, or say where it is wrong; the loaded one stays."""
        try:
            pool = self._state.directory.apply(request.body)
        except DocumentError as error:
            return 422, problem(
                "document-refused", error.message, pointer=error.pointer, allowed=error.allowed
            )
        except VersionNotNewerError as error:
            return 409, problem("version-not-newer", str(error), version=error.current)
        accepted = {
            "pool": pool.document.pool,
            "version": pool.document.version,
            "hash": pool.sha256,
            "state": "accepted",
        }
        return 200, msgspec.json.encode(accepted)

    def get_state(self, request: HttpRequest, _: str) -> Answer:
        """Everything the router knows, for the control plane and for tests."""
        state, now = self._state, clock.monotonic()
        spool, counts = state.spool.state(), state.requests
        pools = {
            name: pool.router.snapshot(now=now) for name, pool in state.directory.pools.items()
        }
        return 200, msgspec.json.encode(
            {
                "router": state.name,
                "version": state.software,
                "started_at": state.started_at,
                "documents": [_document(pool) for pool in state.directory.pools.values()],
                "pools": pools,
                "requests": {
                    "total": counts.total,
                    "failed": counts.failed,
                    "by_status": {str(status): n for status, n in counts.by_status.items()},
                },
                "usage": {
                    "last_sequence": spool.last_sequence,
                    "closed_through": spool.closed_through,
                    "pending_segments": spool.pending_segments,
                    "dropped_segments": spool.dropped_segments,
                },
                "leases_open": sum(pool.get("leases_open", 0) for pool in pools.values()),
            }
        )

    # Usage.

    def get_segments(self, request: HttpRequest, _: str) -> Answer:
        """Closed segments after a sequence number, oldest first."""
        after, limit = _number(request, "after", 0), _number(request, "limit", 20)
        if after is None or limit is None:
            return _bad_number()
        spool = self._spool
        if spool is None:
            return self._no_spool()
        # The watermark is read first: what closes later is not claimed to be delivered.
        state = spool.state()
        segments = spool.segments_after(after, limit=min(limit, MAX_LIMIT))
        return 200, msgspec.json.encode(
            {
                "router": self._state.name,
                "segments": [msgspec.Raw(segment) for segment in segments],
                "closed_through": state.closed_through,
                "complete_until": state.complete_until,
            }
        )

    def acknowledge(self, request: HttpRequest, sequence: str) -> Answer:
        """Forget segments up to a number."""
        if self._spool is None:
            return self._no_spool()
        try:
            deleted = self._spool.acknowledge(int(sequence))
        except AcknowledgeError as error:
            return 409, problem("not-delivered", str(error))
        answer = {"acknowledged_through": int(sequence), "segments_deleted": deleted}
        return 200, msgspec.json.encode(answer)

    def _no_spool(self) -> Answer:
        return 404, problem("not-found", "Usage is kept by the supervisor of this process.")

    # Decisions and knowledge.

    def get_decisions(self, request: HttpRequest, _: str) -> Answer:
        """Sampled records and outcomes after a number; pool, tenant and kind narrow them down."""
        after, limit = _number(request, "after", 0), _number(request, "limit", 100)
        if after is None or limit is None:
            return _bad_number()
        ring, query = self._state.decisions, parse_qs(request.query)
        wanted = {name: query.get(name, [""])[-1] for name in ("pool", "tenant", "kind")}
        records = ring.after(after, limit=min(limit, MAX_LIMIT), **wanted)
        pools = self._state.directory.pools
        answer = {
            "router": self._state.name,
            "started_at": self._state.started_at,
            "decisions": [msgspec.Raw(record) for record in records],
            "last": ring.last_number,
            "left_out": ring.left_out,
            "policies": {name: pool.router.shadows.live for name, pool in pools.items()},
            "sample_rates": {
                name: pool.document.recording.sample_rate for name, pool in pools.items()
            },
            "shadow": {name: pool.router.shadows.describe() for name, pool in pools.items()},
        }
        return 200, msgspec.json.encode(answer)

    def get_decision(self, request: HttpRequest, decision_id: str) -> Answer:
        """One record with its outcome and its reason in words."""
        return whatif.answer_decision(self._state, decision_id)

    def explain(self, request: HttpRequest, _: str) -> Answer:
        """What would happen to a request of these sizes; nothing is sent."""
        return whatif.answer_explain(self._state, request.body)

    def replay(self, request: HttpRequest, _: str) -> Answer:
        """Decide a record again, with something changed."""
        return whatif.answer_replay(self._state, request.body)

    def get_limits(self, request: HttpRequest, _: str) -> Answer:
        """Which limits hold for a tenant and a key, and where each comes from."""
        return effective_limits.answer(self._state, request.query)

    def reset_knowledge(self, request: HttpRequest, _: str) -> Answer:
        """Forget what was learned of a pool's endpoints."""
        try:
            wanted = msgspec.json.decode(request.body, type=_ResetRequest)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return 400, problem("bad-request", f"The body must be {{pool}}: {error}.")
        pool = self._state.directory.pools.get(wanted.pool)
        if pool is None:
            return self._unknown("pool", wanted.pool, sorted(self._state.directory.pools))
        pool.router.reset_knowledge(now=clock.monotonic())
        return 200, msgspec.json.encode({"pool": wanted.pool, "state": "reset"})

    def drain(self, request: HttpRequest, endpoint_id: str) -> Answer:
        """Give an endpoint no further work."""
        pools = self._state.directory.drain(endpoint_id)
        if not pools:
            known = {
                name for pool in self._state.directory.pools.values() for name in pool.endpoints
            }
            return self._unknown("endpoint", endpoint_id, sorted(known)[:20])
        names = [pool.document.pool for pool in pools]
        return 200, msgspec.json.encode(
            {"endpoint": endpoint_id, "state": "draining", "pools": names}
        )

    def get_prefixes(self, request: HttpRequest, endpoint_id: str) -> Answer:
        """Groups of prompts that an endpoint is believed to hold most of, by key, without text."""
        limit = _number(request, "limit", 20)
        if limit is None:
            return _bad_number()
        now, found = clock.monotonic(), {}
        for name, pool in self._state.directory.pools.items():
            instance = pool.router.caches.instance(endpoint_id)
            if instance is not None:
                count = min(limit, MAX_LIMIT)
                found[name] = pool.router.caches.prefixes(instance, count=count, now=now)
        if not found:
            return self._unknown("endpoint", endpoint_id, [])
        return 200, msgspec.json.encode({"endpoint": endpoint_id, "pools": found})

    def _unknown(self, kind: str, name: str, known: list[str]) -> Answer:
        return 404, problem("not-found", f"There is no {kind} '{name}' here.", allowed=known)


def _document(pool: LoadedPool) -> dict[str, Any]:
    return {
        "pool": pool.document.pool,
        "version": pool.document.version,
        "hash": pool.sha256,
        "since": pool.since,
    }


def _number(request: HttpRequest, name: str, default: int) -> int | None:
    text = parse_qs(request.query).get(name, [str(default)])[-1]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _bad_number() -> Answer:
    return 400, problem("bad-request", "after and limit must be whole numbers of 0 or more.")


_ROUTES: tuple[tuple[str, re.Pattern[str], Route], ...] = (
    ("PUT", re.compile("/admin/pool-document"), AdminPort.put_document),
    ("GET", re.compile("/admin/state"), AdminPort.get_state),
    ("GET", re.compile("/admin/usage-segments"), AdminPort.get_segments),
    ("POST", re.compile(r"/admin/usage-segments/(\d{1,18})/acknowledge"), AdminPort.acknowledge),
    ("GET", re.compile("/admin/decisions"), AdminPort.get_decisions),
    ("GET", re.compile("/admin/decisions/([^/]+)"), AdminPort.get_decision),
    ("GET", re.compile("/admin/limits"), AdminPort.get_limits),
    ("POST", re.compile("/admin/explain"), AdminPort.explain),
    ("POST", re.compile("/admin/replay"), AdminPort.replay),
    ("POST", re.compile("/admin/reset-knowledge"), AdminPort.reset_knowledge),
    ("POST", re.compile("/admin/endpoints/([^/]+)/drain"), AdminPort.drain),
    ("GET", re.compile("/admin/endpoints/([^/]+)/prefixes"), AdminPort.get_prefixes),
)
