"""A bound on what a placement can do, from queueing arithmetic: fast enough to try thousands.

One engine that gets `rate` requests a second, each with `w` seconds of prefill and `o` tokens of
answer, has a decode step of `a + b * n` for `n` sequences. Prompts take `rate * w` of its time, so
a token takes `(a + b n) / (1 - rate w)`; with Little's law `n = rate * o * token` this gives

    token = a / (1 - rate (w + o b))

(in a mixture of experts `a` grows with the share of experts that `n` sequences touch).

The first token waits for the prompts before it (M/D/1) and for the steps that its own prompt's
chunks share with decoding. The largest rate at which both stay within the target, and the KV of
the `n` sequences fits, is the engine's bound; a pool's is the sum over its engines, and of prefill
and decode engines the smaller sum counts. The transfer of a pair is staged through host memory and
each link moves one thing at a time. It is a bound for choosing what to simulate, not a forecast.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from routing.planner.engines import Engine
from routing.planner.placement import Placement
from routing.planner.problem import Demand, Target
from routing.simulator.profiles import Profile

P90_OF_MEAN_WAIT = 2.3
"""90th percentile of an exponential wait over its mean: ln 10."""
CACHE_SHARE = 0.5
"""Of an engine's KV that is thought to hold prefixes, the rest being used by running sequences."""
BISECTIONS = 24
MAX_SEQUENCES = 256
EXPERT_ROUNDS = 4
"""After which the time of a token of a mixture of experts has settled to a few percent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Of a pool under its traffic. Modelled; seconds, shares of 0 to 1."""

    capacity_rps: float
    """Largest rate within the target."""
    limited_by: str
    """`prefill`, `decode`, `both` (no pairs), or `target`: no rate keeps it."""
    ttft_seconds: float | None
    tpot_seconds: float | None
    """At the offered rate, or at the bound when that is lower."""
    hit_share: float
    """Of prompt tokens that are expected in a cache."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What one request asks of an engine in its role."""

    profile: Profile
    uncached: int
    context: int
    output: int
    length: int
    """Tokens of KV at its end."""
    transfer: float
    """Seconds that its KV is on the engine's link; 0 for no hand-over."""
    decodes: bool


def estimate(placement: Placement, engines: Mapping[str, Engine], demand: Demand) -> Estimate:
    """The bound of a placement; `engines` by group."""
    traffic = demand.traffic
    prompt_kv = _kv(placement, engines, ("prefill", "both"))
    hit = _hit_tokens(demand, prompt_kv)
    held = _hit_tokens(demand, _kv(placement, engines, ("decode",)))
    sums = {"prefill": 0.0, "decode": 0.0, "both": 0.0}
    for share in placement:
        engine = engines[share.group]
        for role in sums:
            count = getattr(share, role)
            if count:
                work = _work(engine.profile, role, demand, hit=hit, held=held)
                sums[role] += count * _bound(work, demand.target)
    pairs = min(sums["prefill"], sums["decode"])
    capacity = sums["both"] + pairs
    load = min(1.0, traffic.rate_qps / capacity) if capacity else 1.0
    ttft, tpot = _times(placement, engines, demand, hit=hit, held=held, load=load)
    return Estimate(
        capacity_rps=capacity,
        limited_by=_limit(sums),
        ttft_seconds=ttft,
        tpot_seconds=tpot,
        hit_share=hit / traffic.prompt_tokens,
    )


def load_of(found: Estimate, demand: Demand) -> float:
    """Offered rate over the bound; infinite when no rate keeps the target."""
    return demand.traffic.rate_qps / found.capacity_rps if found.capacity_rps else math.inf


def engine_bound(engine: Engine, role: str, demand: Demand, *, hit_tokens: int = 0) -> float:
    """Largest rate of one engine within the target."""
    work = _work(engine.profile, role, demand, hit=hit_tokens, held=0)
    return _bound(work, demand.target)


def _limit(sums: Mapping[str, float]) -> str:
    if sums["both"] == 0 and min(sums["prefill"], sums["decode"]) == 0:
        return "target"
    if sums["prefill"] == sums["decode"] == 0:
        return "both"
    return "prefill" if sums["prefill"] < sums["decode"] else "decode"


def _kv(placement: Placement, engines: Mapping[str, Engine], roles: tuple[str, ...]) -> float:
    total = 0.0
    for share in placement:
        count: int = sum(getattr(share, role) for role in roles)
        total += engines[share.group].profile.kv_tokens * count
    return total


def _hit_tokens(demand: Demand, kv_tokens: float) -> int:
    """Tokens of a prompt found in some cache, when each beginning is kept in one place."""
    traffic = demand.traffic
    if not traffic.groups or not traffic.shared_tokens or not kv_tokens:
        return 0
    working_set = traffic.groups * traffic.shared_tokens
    share = min(1.0, CACHE_SHARE * kv_tokens / working_set)
    return min(traffic.prompt_tokens - 1, int(traffic.shared_tokens * share))


def _work(profile: Profile, role: str, demand: Demand, *, hit: int, held: int) -> _Work:
    traffic = demand.traffic
    prompt, output = traffic.prompt_tokens, traffic.output_tokens
    transfer = 0.0
    if role != "both":
        size = (prompt - held) * profile.kv_bytes_per_token
        transfer = profile.transfer_setup_seconds + size / profile.link_bytes_per_second
    if role == "prefill":
        return _Work(profile, prompt - hit, hit, 1, prompt, transfer, decodes=False)
    if role == "decode":
        return _Work(profile, 1, prompt, output, prompt + output, transfer, decodes=True)
    return _Work(profile, prompt - hit, hit, output, prompt + output, 0.0, decodes=True)


def _bound(work: _Work, target: Target) -> float:
    """Largest rate within the target, by bisection between 0 and where the engine saturates."""
    return _bound_of(work, target.ttft_seconds, target.tpot_seconds)


@lru_cache(maxsize=16_384)
def _bound_of(work: _Work, ttft_target: float, tpot_target: float) -> float:
    def keeps(rate: float) -> bool:
        times = _latency(work, rate)
        if times is None:
            return False
        ttft, tpot = times
        return ttft <= ttft_target and (not work.decodes or tpot <= tpot_target)

    return _largest(keeps, _saturation(work))


def _largest(keeps: Callable[[float], bool], most: float) -> float:
    if not keeps(0.0):
        return 0.0
    low, high = 0.0, most
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _saturation(work: _Work) -> float:
    seconds = _prefill_seconds(work)
    if work.decodes:
        seconds += work.output * _per_sequence(work)
    return 1.0 / max(seconds, work.transfer, 1e-9)


def _prefill_seconds(work: _Work) -> float:
    return work.profile.prefill_seconds(work.uncached, work.context)


def _per_sequence(work: _Work) -> float:
    """Step time that one sequence adds, at its mean context."""
    profile = work.profile
    context = work.length - work.output / 2
    return profile.step_seconds_per_sequence + profile.step_seconds_per_context_token * context


def _latency(work: _Work, rate: float) -> tuple[float, float] | None:
    """TTFT (90th percentile) and time per token at a rate; `None` past saturation or memory."""
    profile = work.profile
    prompt, per_sequence = _prefill_seconds(work), _per_sequence(work)
    busy = rate * (prompt + work.output * per_sequence) if work.decodes else rate * prompt
    if busy >= 1.0 or rate * work.transfer >= 1.0:
        return None
    tpot = _token_seconds(profile, rate * work.output, busy) if work.decodes else 0.0
    sequences = rate * work.output * tpot
    if sequences > MAX_SEQUENCES or sequences * work.length > profile.kv_tokens:
        return None
    chunks = math.ceil(work.uncached / profile.max_num_batched_tokens)
    step = profile.step_seconds + sequences * per_sequence
    service = prompt + chunks * (step if work.decodes else profile.step_seconds)
    wait = _wait(min(0.999, rate * service), service) + _wait(rate * work.transfer, work.transfer)
    # The hand-over is counted once, at the end that waits for it.
    moved = work.transfer if work.decodes else 0.0
    ttft = profile.request_overhead_seconds + service + moved + P90_OF_MEAN_WAIT * wait
    return ttft, tpot


def _token_seconds(profile: Profile, tokens_per_second: float, busy: float) -> float:
    """Time of a token; how many experts a step reads depends on the sequences, and they on it."""
    tpot = profile.step_seconds / (1.0 - busy)
    for _ in range(EXPERT_ROUNDS if profile.step_seconds_of_experts else 0):
        untouched = profile.untouched_share ** max(1.0, tokens_per_second * tpot)
        experts = profile.step_seconds_of_experts * (1.0 - untouched)
        tpot = (profile.step_seconds + experts) / (1.0 - busy)
    return tpot


def _wait(busy: float, service: float) -> float:
    """Mean wait of M/D/1."""
    return busy / (2 * (1 - busy)) * service


def _times(
    placement: Placement,
    engines: Mapping[str, Engine],
    demand: Demand,
    *,
    hit: int,
    held: int,
    load: float,
) -> tuple[float | None, float | None]:
    """Means over the pool, each engine at the same share of its bound."""
    sums = {"weight": 0.0, "ttft": 0.0, "tpot": 0.0, "pair": 0.0, "pair_ttft": 0.0}
    for share in placement:
        profile = engines[share.group].profile
        for role in ("prefill", "decode", "both"):
            count = getattr(share, role)
            work = _work(profile, role, demand, hit=hit, held=held)
            rate = _bound(work, demand.target) * load
            times = _latency(work, rate) if count and rate else None
            if times is None:
                continue
            if role == "prefill":
                sums["pair"] += count * rate
                sums["pair_ttft"] += count * rate * times[0]
            else:
                sums["weight"] += count * rate
                sums["ttft"] += count * rate * times[0]
                sums["tpot"] += count * rate * times[1]
    if not sums["weight"]:
        return None, None
    prefill = sums["pair_ttft"] / sums["pair"] if sums["pair"] else 0.0
    return sums["ttft"] / sums["weight"] + prefill, sums["tpot"] / sums["weight"]
