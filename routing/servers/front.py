"""The admin port of a router with several processes: one router to whoever asks."""

import asyncio
import logging
import re
from typing import Any
from urllib.parse import unquote

import msgspec

from routing.servers import metrics
from routing.servers.admin import AdminPort
from routing.servers.documents import Directory
from routing.servers.errors import problem
from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest, Refused
from routing.servers.lives import Life, NoAnswerError
from routing.servers.merging import (
    Page,
    merge_decisions,
    merge_pages,
    merge_pools,
    parse_page,
    write_page,
)
from routing.servers.metrics import RouterMetrics
from routing.servers.questions import METRICS
from routing.servers.rollout import Answer, Rollout
from routing.servers.spool import SpoolState, UsageSpool
from routing.servers.state import RouterState
from routing.servers.supervisor import Fleet
from routing.servers.upstream import UpstreamPool

logger = logging.getLogger(__name__)

_DRAIN = re.compile("/admin/endpoints/([^/]+)/drain")
_QUESTIONS = ("/admin/explain", "/admin/replay")
"""Change nothing, and the process that recorded a decision knows it best."""
_KEPT_HERE = re.compile("/admin/(usage-segments|decisions)(/.*)?")
OPEN_PATHS = ("/livez", "/readyz", "/metrics")


class SharedSpool(UsageSpool):
    """Complete only up to what every process has sent."""

    fleet: Fleet | None = None

    def state(self) -> SpoolState:
        """See SpoolState."""
        # Read first: what a process sends later ended later.
        sent = self.fleet.complete_until() if self.fleet else float("inf")
        state = super().state()
        return SpoolState(
            last_sequence=state.last_sequence,
            closed_through=state.closed_through,
            pending_segments=state.pending_segments,
            pending_bytes=state.pending_bytes,
            complete_until=min(state.complete_until, sent),
            dropped_segments=state.dropped_segments,
            dropped_events=state.dropped_events,
        )


class FrontPort:
    """Answers requests of the admin port."""

    def __init__(
        self, fleet: Fleet, rollout: Rollout, *, token: bytes, software: str, started_at: float
    ) -> None:
        self._fleet = fleet
        self._rollout = rollout
        self._metrics = RouterMetrics()
        self._started_at = started_at
        self._software = software
        # Usage and decisions are kept here, and answered as by a router of one process.
        own = RouterState(
            name=fleet.name,
            software=software,
            started_at=started_at,
            directory=Directory(None, router_name=fleet.name),
            spool=fleet.spool,
            upstreams=UpstreamPool(),
            metrics=self._metrics,
            decisions=fleet.ring,
        )
        self._own = AdminPort(own, spool=fleet.spool, token=token)
        self.gate = self._own.gate

    @property
    def count_packet(self) -> Any:
        """Counts a packet between routers by its result."""
        return lambda result: self._metrics.gossip.labels(result).inc()

    async def __call__(self, request: HttpRequest, client: Connection) -> None:
        """Answer one request. Probes and metrics need no token."""
        if request.path == "/metrics":
            client.respond(200, await self._metrics_page(), content_type=metrics.CONTENT_TYPE)
            return
        if request.path in OPEN_PATHS:
            status, body = self._probe(request)
            client.respond(status, body, content_type=b"text/plain; charset=utf-8")
            return
        refused: Refused | None = self.gate(request.headers)
        if refused:
            client.respond(*refused, headers=b"www-authenticate: Bearer\r\n")
            return
        client.respond(*await self._answer(request))

    async def _answer(self, request: HttpRequest) -> Answer:
        route = (request.method, request.path)
        drained = _DRAIN.fullmatch(request.path)
        if route == ("PUT", "/admin/pool-document"):
            return await self._rollout.put(request.body)
        if route == ("GET", "/admin/state"):
            return await self._state()
        if drained and request.method == "POST":
            return await self._rollout.drain(unquote(drained[1]))
        if _KEPT_HERE.fullmatch(request.path):
            return await self._kept(request)
        return await self._pass_on(request)

    async def _pass_on(self, request: HttpRequest) -> Answer:
        """What every process does, or one of them knows."""
        answers = await self._ask_all(request)
        if not answers:
            return 503, problem("process-not-ready", "No process of this router answers.")
        if request.method == "GET" or request.path in _QUESTIONS:
            return min(answers, key=lambda answer: answer[0])
        return max(answers, key=lambda answer: answer[0])

    async def _kept(self, request: HttpRequest) -> Answer:
        """What is kept here; beside decisions what the processes counted of shadow policies."""
        status, body = self._own.answer(request)
        if status != 200 or request.path != "/admin/decisions":
            return status, body
        counts = HttpRequest(method="GET", path=request.path, query="limit=0", headers={}, body=b"")
        answers = await self._ask_all(counts)
        told = [msgspec.json.decode(part) for code, part in answers if code == 200]
        return 200, msgspec.json.encode(merge_decisions(msgspec.json.decode(body), told))

    async def _ask_all(self, request: HttpRequest) -> list[Answer]:
        lives = self._fleet.ready
        asked = (
            life.ask(request.method, request.path, query=request.query, body=request.body)
            for life in lives
        )
        found = await asyncio.gather(*asked, return_exceptions=True)
        return [_answer_of(life, answer) for life, answer in zip(lives, found, strict=True)]

    # Probes and metrics.

    def _probe(self, request: HttpRequest) -> Answer:
        if request.path == "/livez":
            return 200, b"ok"
        fleet, spool = self._fleet, self._fleet.spool.state()
        checks = {
            "document loaded": bool(fleet.shelf.kept),
            "not draining": not fleet.is_draining,
            "a process serves": bool(fleet.ready),
        }
        status = 200 if all(checks.values()) else 503
        if "verbose" not in request.query:
            return status, b"ok" if status == 200 else b"not ready"
        checks["every process serves"] = len(fleet.ready) == fleet.processes
        checks["usage spool has room"] = spool.dropped_segments == 0
        lines = [f"{'ok ' if good else 'NOT'} {name}" for name, good in checks.items()]
        return status, "\n".join(lines).encode() + b"\n"

    async def _metrics_page(self) -> bytes:
        fleet = self._fleet
        pages: dict[str, Page] = {}
        for life in fleet.ready:
            try:
                _, body = await life.ask("GET", METRICS)
            except NoAnswerError as error:
                logger.error("%s Its metrics are missing.", error)  # noqa: TRY400 - the sentence is the whole story
                continue
            pages[str(life.number)] = life.page = _of_process(parse_page(body.decode()))
        own = self._metrics
        own.processes.set(len(fleet.ready))
        own.restarts(fleet.restarts)
        pages[""] = parse_page(self._own.metrics_page().decode())
        return write_page(merge_pages(pages, retired=fleet.retired))

    # State.

    async def _state(self) -> Answer:
        fleet = self._fleet
        lives = fleet.ready
        asked = (life.ask("GET", "/admin/state") for life in lives)
        found = await asyncio.gather(*asked, return_exceptions=True)
        states: list[dict[str, Any]] = []
        for life, answer in zip(lives, found, strict=True):
            status, body = _answer_of(life, answer)
            if status == 200:
                states.append(msgspec.json.decode(body))
        base = states[0] if states else {}
        pools = merge_pools(states)
        counts, spool = fleet.requests(), fleet.spool.state()
        merged = base | {
            "router": fleet.name,
            "version": self._software,
            "started_at": self._started_at,
            "documents": [
                {
                    "pool": name,
                    "version": kept.document.version,
                    "hash": kept.sha256,
                    "since": kept.since,
                }
                for name, kept in fleet.shelf.kept.items()
            ],
            "pools": pools,
            "requests": {
                "total": counts.total,
                "failed": counts.failed,
                "by_status": {str(status): count for status, count in counts.by_status.items()},
            },
            "usage": {
                "last_sequence": spool.last_sequence,
                "closed_through": spool.closed_through,
                "pending_segments": spool.pending_segments,
                "dropped_segments": spool.dropped_segments,
            },
            "leases_open": sum(pool.get("leases_open", 0) for pool in pools.values()),
            "processes": [_process(life) for _, life in sorted(fleet.lives.items())],
            "restarts": fleet.restarts,
        }
        return 200, msgspec.json.encode(merged)


def _of_process(page: Page) -> Page:
    """Without what only the supervisor knows: the spool, and who serves."""
    return {
        name: family
        for name, family in page.items()
        if not name.startswith(("consort_spool", "consort_process"))
    }


def _answer_of(life: Life, answer: Answer | BaseException) -> Answer:
    if isinstance(answer, NoAnswerError):
        return 503, problem("process-not-ready", str(answer))
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _process(life: Life) -> dict[str, Any]:
    beat = life.beat
    return {
        "number": life.number,
        "pid": life.process.pid,
        "state": "ready" if life.is_ready else "starting",
        "started_at": life.started_at,
        "connections": life.connections,
        "requests": None if beat is None else beat.total,
        "failed": None if beat is None else beat.failed,
    }
