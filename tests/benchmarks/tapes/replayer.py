"""Decides a tape again: the same router code, told the same at the same times."""

from typing import Any, NamedTuple

import msgspec
import numpy as np

from routing.core.decision import Decision
from routing.core.document import parse_document
from routing.core.kv_events import Batch, Cleared, Removed, Stored
from routing.core.lease import Lease
from routing.core.openai import ParsedBody
from routing.core.request import InferenceRequest
from routing.core.signals import EngineSignals
from routing.pool.router import PoolRouter
from tests.benchmarks.tapes.tape import MICRO, Tape

_EVENTS = {event.__name__: event for event in (Stored, Removed, Cleared)}


class Pick(NamedTuple):
    """One decision: an endpoint, or the code of a refusal."""

    at: float
    recorded: str
    again: str


def replay(tape: Tape, *, policy: str | None = None) -> list[Pick]:
    """All decisions of a tape, made again; `policy` asks another one than was asked then.

    What follows a decision is what followed it then, so that one that differs does not change the
    next ones.
    """
    return _Replayer(tape, policy).run()


def prompts_of(tape: Tape) -> list[list[int]]:
    """Block keys of the prompts, by number."""
    return [rest[1] for _, rest in tape.of("decide") if rest[1] is not None]


def request_of(told: dict[str, Any], keys: list[int]) -> InferenceRequest:
    """A request as it was."""
    parsed = told["parsed"] | {"block_keys": np.array(keys, dtype=np.uint64)}
    facts = {
        name: tuple(value) if isinstance(value, list) else value for name, value in told.items()
    }
    return InferenceRequest(**(facts | {"parsed": ParsedBody(**parsed)}))


class _Replayer:
    def __init__(self, tape: Tape, policy: str | None) -> None:
        self._tape, self._policy = tape, policy
        header = tape.header
        document = parse_document(msgspec.json.encode(header.document))
        self._endpoints = {spec.id for spec in document.endpoints}
        self._router = PoolRouter(document, seed=header.seed, now=header.began / MICRO)
        self._prompts = prompts_of(tape)
        self._decisions: list[Decision] = []
        self._leases: dict[int, Lease] = {}
        self._picks: list[Pick] = []

    def run(self) -> list[Pick]:
        for at, kind, rest in self._tape.lines:
            getattr(self, f"_{kind}")(at / MICRO, *rest)
        return self._picks

    def _decide(
        self,
        now: float,
        told: dict[str, Any],
        _: list[int] | None,
        exclude: list[str],
        policy: str | None,
        picked: str,
    ) -> None:
        request = request_of(told, self._prompts[told["parsed"]["block_keys"]])
        decision = self._router.decide(
            request, now=now, exclude=frozenset(exclude), policy=self._policy or policy
        )
        again = decision.refusal.code if decision.refusal else decision.destination
        self._picks.append(Pick(now, picked, str(again)))
        if picked in self._endpoints:
            decision = msgspec.structs.replace(decision, destination=picked)
        self._decisions.append(decision)

    def _begin(self, now: float, number: int, lease: int) -> None:
        decision = self._decisions[number]
        self._leases[lease] = self._router.begin(decision.request, decision, now=now)

    def _first(self, now: float, lease: int) -> None:
        self._router.first_token(self._leases[lease], now=now)

    def _tokens(self, now: float, lease: int, count: int) -> None:
        self._router.tokens(self._leases[lease], count, now=now)

    def _end(self, now: float, lease: int, counts: dict[str, Any]) -> None:
        self._router.end(self._leases[lease], now=now, **counts)

    def _fail(self, now: float, endpoint: str, kind: Any) -> None:
        self._router.failed(endpoint, kind, now=now)

    def _read(self, now: float, endpoint: str, known: dict[str, Any]) -> None:
        self._router.observe(endpoint, EngineSignals(**known), now=now)

    def _check(self, now: float, endpoint: str, matches: bool) -> None:
        self._router.tokeniser_checked(endpoint, matches=matches, now=now)

    def _events(self, now: float, method: str, endpoint: str, rest: dict[str, Any]) -> None:
        feed, instance = self._router.caches.events, self._router.caches.instance(endpoint)
        assert instance is not None
        if method == "connect":
            feed.health[instance].on_connect(now=now)
        elif method in ("take", "take_part"):
            batch = _batch(rest["batch"])
            if method == "take":
                feed.take(instance, batch, now=now)
            else:
                feed.take_part(instance, batch, batch.events)
        elif method == "replayed":
            sent_at = rest["sent_at"]
            feed.replayed(instance, rest["sequence"], now=now, sent_at=lambda: sent_at)
        elif method in ("follow", "sweep"):
            getattr(feed, method)(instance, **rest)
        else:
            getattr(feed, method)(instance, now=now, **rest)


def _batch(told: list[Any]) -> Batch:
    sent_at, rank, unknown, events = told
    return Batch(
        events=[_EVENTS[name](*values) for name, *values in events],
        sent_at=sent_at,
        rank=rank,
        unknown_events=unknown,
    )
