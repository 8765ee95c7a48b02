"""A small model of a three-vendor fleet, in virtual time, driven by the real router.

The engine model is a queue with continuous batching, chunked prefill and an LRU prefix cache of two
levels (system prompt, question). Its step times are those of published runs of granite-4.1-8b:
decode 6 ms + 0.30 ms per sequence at 3,050 tokens of context on H100-NVL, 6 ms + 0.23 ms on MI325X;
prefill about 7,500 tokens in 0.33 s on H100-NVL and MI325X.
"""

import heapq
import itertools
import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from routing.core.document import (
    EndpointSpec,
    KvContract,
    ModelSpec,
    PoolDocument,
    SpeedPrior,
)
from routing.core.lease import Lease
from routing.core.openai import parse_request
from routing.core.request import InferenceRequest
from routing.core.signals import EngineSignals
from routing.pool.router import PoolRouter

SYSTEM_TOKENS, QUESTION_TOKENS, OUTPUT_TOKENS = 6000, 1200, 150
PROMPT_TOKENS = SYSTEM_TOKENS + QUESTION_TOKENS
GROUPS, PROMPTS_PER_GROUP = 150, 5
KV_BYTES_PER_TOKEN = 163_840
LINK_BYTES_PER_SECOND = 12.5e9
STAGED_PASSES = 3.0


@dataclass(frozen=True)
class Card:
    vendor: str
    step: float
    per_sequence: float
    per_context_token: float
    prefill_rate: float
    kv_tokens: int
    chunk: int


CARDS = {
    "h100-nvl": Card("nvidia", 6.0e-3, 0.05e-3, 0.082e-6, 22_700, 380_000, 2048),
    "mi325x": Card("amd", 6.0e-3, 0.03e-3, 0.067e-6, 24_900, 1_220_000, 2048),
    "gaudi3": Card("intel", 12.0e-3, 0.20e-3, 0.160e-6, 20_000, 459_000, 8192),
}
FLEET = [("h100-nvl", "prefill")] * 4 + [("mi325x", "decode")] * 8 + [("gaudi3", "both")] * 8


@dataclass(eq=False)
class Job:
    """One request inside an engine."""

    group: int
    question: int
    output: int
    on_prompt: Callable[[float, int], None]
    on_end: Callable[[float], None]
    on_tokens: Callable[[float], None] = lambda now: None
    arrives_computed: bool = False
    cached: int = 0
    to_compute: int = 0
    made: int = 0


class Engine:
    """Steps of one replica; `slowdown` makes a sick card."""

    def __init__(self, card: Card, agenda: "Agenda", *, slowdown: float = 1.0) -> None:
        self.card = card
        self.agenda = agenda
        self.slowdown = slowdown
        self.waiting: list[Job] = []
        self.prefilling: list[Job] = []
        self.decoding: list[Job] = []
        self.cache: OrderedDict[tuple[int, ...], int] = OrderedDict()
        self.private = 0
        self.is_stepping = False

    def submit(self, job: Job) -> None:
        self.waiting.append(job)
        self._wake()

    def _wake(self) -> None:
        if not self.is_stepping and (self.waiting or self.prefilling or self.decoding):
            self.is_stepping = True
            self._step()

    def held(self, job: Job) -> int:
        """Prompt tokens of a job in the cache; at least one is always computed."""
        found = 0
        for key, size in _blocks(job):
            if key not in self.cache:
                break
            found += size
        return min(found, PROMPT_TOKENS - 1)

    def _admit(self) -> None:
        while self.waiting and len(self.prefilling) + len(self.decoding) < 256:
            job = self.waiting.pop(0)
            job.cached = self.held(job)
            for key, size in reversed(_blocks(job)):
                self.cache[key] = size
                self.cache.move_to_end(key)
            self.private += job.output
            while sum(self.cache.values()) + self.private > self.card.kv_tokens:
                self.cache.popitem(last=False)
            job.to_compute = 0 if job.arrives_computed else PROMPT_TOKENS - job.cached
            self.prefilling.append(job)

    def _step(self) -> None:
        self._admit()
        budget, computed, finished = self.card.chunk, 0, []
        for job in self.prefilling:
            part = min(budget, job.to_compute)
            job.to_compute -= part
            budget -= part
            computed += part
            if job.to_compute == 0:
                finished.append(job)
            if budget == 0:
                break
        context = sum(PROMPT_TOKENS + job.made for job in self.decoding)
        seconds = (
            self.card.step
            + self.card.per_sequence * len(self.decoding)
            + self.card.per_context_token * context
            + computed / self.card.prefill_rate
        ) * self.slowdown
        self.agenda.after(seconds, lambda now: self._finish_step(now, finished))

    def _finish_step(self, now: float, finished: list[Job]) -> None:
        for job in [*self.decoding, *finished]:
            job.made += 1
        for job in finished:
            self.prefilling.remove(job)
            self.decoding.append(job)
            job.on_prompt(now, job.cached)
        for job in [job for job in self.decoding if job.made >= job.output]:
            self.decoding.remove(job)
            self.private -= job.output
            job.on_end(now)
        self.is_stepping = False
        self._wake()


def _blocks(job: Job) -> list[tuple[tuple[int, ...], int]]:
    return [((job.group,), SYSTEM_TOKENS), ((job.group, job.question), QUESTION_TOKENS)]


class Agenda:
    """Virtual time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Callable[[float], None]]] = []
        self._turn = itertools.count()

    def at(self, when: float, call: Callable[[float], None]) -> None:
        heapq.heappush(self._heap, (when, next(self._turn), call))

    def after(self, seconds: float, call: Callable[[float], None]) -> None:
        self.at(self.now + seconds, call)

    def run(self) -> None:
        while self._heap:
            self.now, _, call = heapq.heappop(self._heap)
            call(self.now)


@dataclass
class Outcome:
    """What a run gave."""

    ttft: list[float] = field(default_factory=list)
    e2e: list[float] = field(default_factory=list)
    predicted_ttft: list[float] = field(default_factory=list)
    cached: int = 0
    prompt: int = 0
    destinations: dict[str, int] = field(default_factory=dict)
    paired: int = 0

    @property
    def hit_rate(self) -> float:
        return self.cached / self.prompt


def fleet_document(fleet: list[tuple[str, str]]) -> PoolDocument:
    def contract(card: Card) -> KvContract:
        return KvContract(
            engine="vllm", engine_version="0.32", connector="nixl", connector_version="1",
            transport="nixl", model_revision="r1", kv_dtype="bf16", block_size_tokens=16,
            layout="HND", kv_heads=8, head_size=128, tensor_parallel=1, pipeline_parallel=1,
            attention_backend=f"backend-of-{card.vendor}", fabric="roce-a", staging_device="cpu",
            transfer_bytes_per_second=LINK_BYTES_PER_SECOND,
        )  # fmt: skip

    return PoolDocument(
        pool="three-vendors",
        version=1,
        author="test",
        created_at="2026-01-01T00:00:00Z",
        role_mode="disaggregated",
        models=(ModelSpec(name="granite", max_model_len=9216),),
        endpoints=tuple(
            EndpointSpec(
                id=f"{name}-{position}",
                url=f"http://10.0.0.{position}:8000",
                instance="1",
                engine="vllm",
                role=role,
                vendor=CARDS[name].vendor,
                speed_class=name,
                node=f"n{position}",
                site="s",
                kv_capacity_tokens=CARDS[name].kv_tokens,
                block_size_tokens=16,
                kv_contract=contract(CARDS[name]),
            )
            for position, (name, role) in enumerate(fleet)
        ),
        speed_classes={
            name: SpeedPrior(
                prefill_tokens_per_second=card.prefill_rate,
                step_seconds=card.step,
                step_seconds_per_sequence=card.per_sequence,
                step_seconds_per_context_token=card.per_context_token,
                kv_bytes_per_token=KV_BYTES_PER_TOKEN,
            )
            for name, card in CARDS.items()
        },
    )


class Run:
    """One policy over one workload; every router call that a server makes is made here."""

    def __init__(
        self,
        policy: str,
        *,
        requests: int = 600,
        rate: float = 30.0,
        fleet: list[tuple[str, str]] = FLEET,
        slow: dict[str, float] | None = None,
        seed: int = 7,
    ) -> None:
        self.policy = policy
        self.agenda = Agenda()
        self.document = fleet_document(fleet)
        self.router = PoolRouter(self.document, seed=seed, now=0.0)
        self.engines = {
            endpoint.id: Engine(
                CARDS[endpoint.speed_class],
                self.agenda,
                slowdown=(slow or {}).get(endpoint.id, 1.0),
            )
            for endpoint in self.document.endpoints
        }
        self.outcome = Outcome()
        self.left = requests
        rng = np.random.default_rng(seed)
        bodies: dict[tuple[int, int], bytes] = {}
        now = 0.0
        for number in range(requests):
            now += float(rng.exponential(1 / rate))
            group, question = int(rng.integers(GROUPS)), int(rng.integers(PROMPTS_PER_GROUP))
            body = bodies.setdefault((group, question), _body(group, question))
            self.agenda.at(now, self._arrival(number, group, question, body))
        self.agenda.at(0.25, self._scrape)

    def _scrape(self, now: float) -> None:
        for name, engine in self.engines.items():
            used = sum(PROMPT_TOKENS + job.made for job in engine.decoding)
            self.router.observe(
                name,
                EngineSignals(
                    running=len(engine.prefilling) + len(engine.decoding),
                    waiting=len(engine.waiting),
                    kv_usage=min(1.0, used / engine.card.kv_tokens),
                    kv_capacity_tokens=engine.card.kv_tokens,
                ),
                now=now,
            )
        if self.left:
            self.agenda.after(0.5, self._scrape)

    def _arrival(
        self, number: int, group: int, question: int, body: bytes
    ) -> Callable[[float], None]:
        def arrive(now: float) -> None:
            parsed = parse_request(
                "/v1/chat/completions",
                body,
                identity=self.document.prompt_identity,
                bytes_per_token=self.router.bytes_per_token("granite"),
            )
            request = InferenceRequest(
                id=str(number), path="/v1/chat/completions", model="granite", tenant="t",
                project="p", key_id="k", parsed=parsed, arrived_at=now,
            )  # fmt: skip
            self._send(request, group, question, now)

        return arrive

    def _send(self, request: InferenceRequest, group: int, question: int, now: float) -> None:
        decision = self.router.decide(request, now=now, policy=self.policy)
        assert decision.destination is not None, decision.refusal
        lease = self.router.begin(request, decision, now=now)
        outcome, destination = self.outcome, decision.destination
        outcome.destinations[destination] = outcome.destinations.get(destination, 0) + 1
        outcome.prompt += PROMPT_TOKENS
        counted: list[int] = []

        def first_token(when: float, cached: int) -> None:
            self.router.first_token(lease, now=when)
            if decision.prefill is None:
                counted.append(cached)
                outcome.cached += cached
            outcome.ttft.append(when - now)
            outcome.predicted_ttft.append(decision.predicted.ttft_seconds)

        def ended(when: float) -> None:
            self.left -= 1
            outcome.e2e.append(when - now)
            self.router.end(
                lease,
                now=when,
                outcome="ok",
                prompt_tokens=PROMPT_TOKENS,
                cached_tokens=counted[0] if counted else None,
                completion_tokens=OUTPUT_TOKENS,
            )

        job = Job(group, question, OUTPUT_TOKENS, first_token, ended)
        if decision.prefill is None:
            self.engines[destination].submit(job)
        else:
            self._send_pair(lease, job)

    def _send_pair(self, lease: Lease, job: Job) -> None:
        self.outcome.paired += 1
        job.arrives_computed = True
        destination = self.engines[lease.destination.spec.id]

        def prompt_done(when: float, cached: int) -> None:
            self.outcome.cached += cached
            self.router.prefill_done(
                lease, now=when, prompt_tokens=PROMPT_TOKENS, cached_tokens=cached
            )
            # The destination pulls only what it does not hold.
            moved = PROMPT_TOKENS - destination.held(job)
            seconds = moved * KV_BYTES_PER_TOKEN / LINK_BYTES_PER_SECOND * STAGED_PASSES
            self.agenda.after(seconds, lambda later: destination.submit(job))

        leg = Job(job.group, job.question, 1, prompt_done, lambda when: None)
        self.engines[lease.prompt_instance.spec.id].submit(leg)

    def finish(self) -> Outcome:
        self.agenda.run()
        assert self.left == 0
        assert self.router.leases_open == 0
        return self.outcome


def _body(group: int, question: int) -> bytes:
    system = (f"Group {group:03d} rule. " * 2000)[: SYSTEM_TOKENS * 4]
    text = (f"Question {question} of {group:03d}? " * 500)[: QUESTION_TOKENS * 4 - 20]
    return json.dumps(
        {
            "model": "granite",
            "max_tokens": OUTPUT_TOKENS,
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": text},
            ],
        }
    ).encode()
