"""What each step of a request teaches: index entries, trust, speeds, transfer cost, lengths."""

from dataclasses import dataclass

from routing.core.lease import Lease
from routing.core.signals import EngineSignals
from routing.core.table import Instance
from routing.pool.knowledge import Knowledge
from routing.producers import trust
from routing.producers.breakers import BEFORE_FIRST_TOKEN


@dataclass(frozen=True, slots=True)
class Counts:
    """The engine's own counts; `None` when it gave none."""

    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None


def hope(known: Knowledge, lease: Lease) -> None:
    """The prompt will be in the cache where it is computed; siblings in between may follow.

    A destination that waits for a transfer is not hoped for: a sibling sent there to compute its
    own prompt would find nothing.
    """
    keys = lease.request.parsed.block_keys.tolist()
    known.index.insert(lease.prompt_instance.slot, keys, lease=lease.number)


def withdraw(known: Knowledge, lease: Lease) -> None:
    """The request ended before its prompt was computed: take back what only it hoped for."""
    instance = lease.prompt_instance
    if instance.is_alive and lease.prefill_done_at is None:
        keys = lease.request.parsed.block_keys.tolist()
        known.index.withdraw(instance.slot, keys, lease=lease.number)


def after_prefill(
    known: Knowledge,
    lease: Lease,
    *,
    now: float,
    prompt_tokens: int | None,
    cached_tokens: int | None,
) -> None:
    """The prefill end has the prompt; its speed and its trust are learned."""
    lease.prefill_done_at = now
    known.leases.prompt_done(known.table, lease, now=now)
    prefill = lease.prefill
    if prefill is None or not prefill.is_alive:
        return
    _confirm(known, prefill, lease)
    _close_breaker(known, prefill)
    _learn_prompt(known, lease, prompt_tokens, cached_tokens, seconds=now - lease.began_at)


def after_first_token(known: Knowledge, lease: Lease, *, now: float) -> None:
    """The destination has the prompt's KV; with a pair, the transfer took the time since P."""
    known.leases.first_token(known.table, lease, now=now)
    if not lease.destination.is_alive:
        return
    _confirm(known, lease.destination, lease)
    if known.breakers.of(lease.destination).last_kind in BEFORE_FIRST_TOKEN:
        # A long stream must not keep everybody else waiting for its end.
        _close_breaker(known, lease.destination)
    done = lease.prefill_done_at
    if lease.prefill is not None and done is not None and lease.prefill.is_alive:
        row = lease.destination.row
        predicted = lease.decision.predicted
        # What is not transfer: one step of the destination's batch.
        step = float(known.table.step_seconds[row])
        known.pairs.observe(
            lease.prefill.row,
            row,
            tokens=lease.request.parsed.prompt_tokens - predicted.destination_hit_tokens,
            seconds=now - done - step,
        )
        known.close_pair_breaker(lease.prefill, lease.destination)


def after_end(known: Knowledge, lease: Lease, counts: Counts, *, now: float) -> None:
    """A request went well: speeds, trust, lengths and bytes per token, from the engine's counts."""
    request, destination = lease.request, lease.destination
    if destination.is_alive:
        _close_breaker(known, destination)
        if lease.prefill is not None and lease.prefill.is_alive:
            known.close_pair_breaker(lease.prefill, destination)
        if lease.first_token_at is None:
            # Not streamed: prefill and decode cannot be told apart, the cache can.
            _confirm(known, destination, lease)
        if lease.prefill is None:
            seconds = (
                None if lease.first_token_at is None else lease.first_token_at - lease.began_at
            )
            _learn_prompt(known, lease, counts.prompt_tokens, counts.cached_tokens, seconds=seconds)
    completion = counts.completion_tokens
    if completion is not None:
        if destination.is_alive:
            known.speeds.observe_decode(known.table, lease, output_tokens=completion, now=now)
            known.index.occupy(destination.slot, known.blocks(completion, model=request.model))
        known.lengths.observe(request.tenant, request.model, max(1, completion // request.parsed.n))
    if counts.prompt_tokens is not None and not request.parsed.has_exact_tokens:
        known.bytes_per_token.observe(
            request.model,
            prompt_bytes=request.parsed.prompt_bytes,
            prompt_tokens=counts.prompt_tokens,
        )


def after_reading(
    known: Knowledge, instance: Instance, signals: EngineSignals, *, now: float
) -> None:
    """One metrics page: load, the size of the cache, and whether the engine was started anew."""
    restarted = known.engines.observe(known.table, instance, signals, now=now)
    if restarted:
        known.index.clear(instance.slot)
        known.table.trust[instance.row] = 1.0
    if signals.kv_capacity_tokens is not None:
        known.index.set_capacity(instance.slot, known.blocks(signals.kv_capacity_tokens))


def _confirm(known: Knowledge, instance: Instance, lease: Lease) -> None:
    known.index.confirm(instance.slot, lease.request.parsed.block_keys.tolist())


def _close_breaker(known: Knowledge, instance: Instance) -> None:
    if known.breakers.succeed(instance):
        known.table.open_until[instance.row] = float("-inf")


def _learn_prompt(
    known: Knowledge,
    lease: Lease,
    prompt_tokens: int | None,
    cached_tokens: int | None,
    *,
    seconds: float | None,
) -> None:
    """Trust and prefill speed of whoever computed the prompt, where the engine gave counts."""
    predicted = lease.decision.predicted
    trust.observe_hit(
        known.table,
        lease.prompt_instance.row,
        predicted_tokens=predicted.indexed_tokens,
        cached_tokens=cached_tokens,
    )
    if seconds is None or prompt_tokens is None:
        return
    if cached_tokens is None and predicted.indexed_tokens > 0:
        # How much was computed is a guess: nothing to learn a speed from.
        return
    lease.at_begin["admission"] = predicted.admission_seconds
    known.speeds.observe_prefill(
        known.table, lease, computed_tokens=prompt_tokens - (cached_tokens or 0), seconds=seconds
    )
