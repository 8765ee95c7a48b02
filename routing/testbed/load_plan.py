"""What a load generator sends and when: prompts that share prefixes, open-loop arrivals (pure).

The shape is inference-perf's `shared_prefix`: groups of prompts that begin with the same text.
Everything follows from the seed: same spec, same bytes at the same times.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import orjson
import xxhash

from routing.testbed import tokens as tk

Api = Literal["chat", "completions"]
Arrivals = Literal["poisson", "constant"]
APIS: tuple[Api, ...] = ("chat", "completions")
ARRIVALS: tuple[Arrivals, ...] = ("poisson", "constant")

_TO_PIECE = bytes(value & 127 for value in range(256))
_PATHS: dict[Api, str] = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}


class LoadSpecError(Exception):
    """A load was described that cannot be sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """One load. Give `requests` or `duration_seconds`; with both, what is met first ends it."""

    urls: tuple[str, ...]
    model: str
    rate: float
    """Requests per second, offered whatever the answers do."""
    key: str | None = None
    requests: int | None = None
    duration_seconds: float | None = None
    groups: int = 150
    prompts_per_group: int = 5
    system_tokens: int = 6000
    question_tokens: int = 1200
    output_tokens: int = 150
    seed: int = 7
    api: Api = "chat"
    arrivals: Arrivals = "poisson"
    timeout_seconds: float = 300.0
    slo_ttft_seconds: float | None = None
    slo_tpot_seconds: float | None = None
    """Targets for the goodput of the report."""
    max_in_flight: int = 4096
    """Requests over this are counted as failed instead of being sent."""

    @property
    def path(self) -> str:
        """Path that the requests go to."""
        return _PATHS[self.api]

    def check(self) -> None:
        """Raise LoadSpecError with the first thing that is wrong."""
        if not self.urls:
            raise LoadSpecError("At least one URL is needed.")
        for url in self.urls:
            if not url.startswith("http://") or "/" in url.removeprefix("http://"):
                raise LoadSpecError(f"'{url}' is not of the form http://host:port.")
        if self.rate <= 0:
            raise LoadSpecError(f"The rate is {self.rate}; it must be above 0 requests per second.")
        if self.requests is None and self.duration_seconds is None:
            raise LoadSpecError("Either a number of requests or a duration is needed.")
        for name in ("groups", "prompts_per_group", "question_tokens", "output_tokens"):
            if getattr(self, name) < 1:
                raise LoadSpecError(f"{name} is {getattr(self, name)}; it must be at least 1.")


def arrival_times(spec: LoadSpec) -> Iterator[float]:
    """Seconds after the start at which requests are sent, ascending."""
    now, sent = 0.0, 0
    while spec.requests is None or sent < spec.requests:
        if spec.duration_seconds is not None and now >= spec.duration_seconds:
            return
        yield now
        gap = 1.0 if spec.arrivals == "constant" else -math.log(_uniform(spec.seed, "gap", sent))
        now += gap / spec.rate
        sent += 1


def request_body(spec: LoadSpec, index: int) -> bytes:
    """JSON of the request at an index; all texts are ASCII without anything to escape."""
    group, question = prompt_at(spec, index)
    system = _text(spec.seed, f"system-{group}", spec.system_tokens)
    asked = _text(spec.seed, f"question-{group}-{question}", spec.question_tokens)
    common = (
        b',"max_tokens":%d,"temperature":0,"ignore_eos":true,'
        b'"stream":true,"stream_options":{"include_usage":true}}' % spec.output_tokens
    )
    model = b'{"model":' + orjson.dumps(spec.model)
    if spec.api == "completions":
        return b"".join((model, b',"prompt":"', system, asked, b'"', common))
    return b"".join(
        (
            model,
            b',"messages":[{"role":"system","content":"',
            system,
            b'"},{"role":"user","content":"',
            asked,
            b'"}]',
            common,
        )
    )


def prompt_at(spec: LoadSpec, index: int) -> tuple[int, int]:
    """Group and question of a request: each pair once per round, in the round's own order."""
    size = spec.groups * spec.prompts_per_group
    number = _order(spec.seed, size, index // size)[index % size]
    return number % spec.groups, number // spec.groups


@lru_cache(maxsize=4)
def _order(seed: int, size: int, round_number: int) -> tuple[int, ...]:
    return tuple(sorted(range(size), key=lambda number: _hash(seed, f"{round_number}", number)))


@lru_cache(maxsize=2048)
def _text(seed: int, label: str, tokens: int) -> bytes:
    raw = b"".join(
        xxhash.xxh3_128_digest(f"{label}-{part}".encode(), seed=seed)
        for part in range(-(-tokens // 16))
    )
    return b"".join(map(tk.PIECES.__getitem__, raw[:tokens].translate(_TO_PIECE)))


def _hash(seed: int, label: str, number: int) -> int:
    return xxhash.xxh3_64_intdigest(f"{label}-{number}".encode(), seed=seed)


def _uniform(seed: int, label: str, number: int) -> float:
    """A number above 0 and at most 1."""
    return ((_hash(seed, label, number) >> 11) + 1) / (1 << 53)
