"""What each step of a request teaches: index entries, trust, speeds, transfer cost, lengths."""

import msgspec

from routing.core.lease import Lease
from routing.core.openai import ParsedBody
from routing.core.signals import EngineSignals
from routing.core.table import Instance
from routing.pool import pace
from routing.pool.knowledge import Knowledge
from routing.producers import trust
from routing.producers.breakers import BEFORE_FIRST_TOKEN


class Counts(msgspec.Struct, frozen=True):
    """The engine's own counts; `None` when it gave none."""

    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None


def hope(known: Knowledge, lease: Lease) -> None:
    """The prompt will be in the cache where it is computed; siblings in between may follow.

    A destination that waits for a transfer is not hoped for: a sibling sent there to compute its
    own prompt would find nothing.
    """
    parsed, instance = lease.request.parsed, lease.prompt_instance
    keys = known.caches.hope(instance, parsed, lease=lease.number, now=lease.began_at)
    known.arrivals.began(lease)
    known.homes.began(parsed.block_keys.tolist(), lease, now=lease.began_at)
    known.news.begun(instance, lease=lease.number, keys=keys)


def withdraw(known: Knowledge, lease: Lease) -> None:
    """The request ended before its prompt was computed: take back what only it hoped for."""
    instance = lease.prompt_instance
    if instance.is_alive and lease.prefill_done_at is None:
        keys = known.caches.withdraw(instance, lease.request.parsed, lease=lease.number)
        known.news.withdrawn(instance, lease=lease.number, keys=keys)


def leave(known: Knowledge, lease: Lease) -> None:
    """The request is over, however it went."""
    known.transfers.leave(lease)
    known.links.end(known.table, lease)
    known.caches.leave(lease)


def prompt_done(known: Knowledge, lease: Lease, *, now: float) -> None:
    """The prompt is computed, and on its way where its destination is another endpoint."""
    lease.prefill_done_at = now
    known.leases.prompt_done(known.table, lease, now=now)
    if lease.request.parsed.stream:
        known.links.ready(lease)
    else:
        # Nobody tells when a whole answer began, and its transfer is the shorter part of it.
        known.links.end(known.table, lease)


def after_prefill(
    known: Knowledge,
    lease: Lease,
    *,
    now: float,
    prompt_tokens: int | None,
    cached_tokens: int | None,
) -> None:
    """The prefill end has the prompt; its speed and its trust are learned."""
    prompt_done(known, lease, now=now)
    prefill = lease.prefill
    if prefill is None or not prefill.is_alive:
        return
    _confirm(known, prefill, lease)
    _close_breaker(known, prefill)
    _learn_prompt(known, lease, prompt_tokens, cached_tokens, seconds=now - lease.began_at)


def after_first_token(known: Knowledge, lease: Lease, *, now: float) -> None:
    """The destination has the prompt's KV; with a pair, the transfer took the time since P."""
    known.leases.first_token(known.table, lease, now=now)
    known.transfers.arrive(lease)
    ahead = known.links.end(known.table, lease)
    pace.after_first_token(known, lease, now=now)
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
        step = float(known.table.step_seconds[row] + known.table.network_seconds[row])
        known.pairs.observe(
            lease.prefill.row,
            row,
            tokens=lease.request.parsed.prompt_tokens - predicted.destination_hit_tokens + ahead,
            seconds=now - done - step,
        )
        known.close_pair_breaker(lease.prefill, lease.destination)


def after_end(known: Knowledge, lease: Lease, counts: Counts, *, now: float) -> None:
    """A request went well: speeds, trust, lengths and bytes per token, from the engine's counts."""
    request, destination = lease.request, lease.destination
    known.transfers.arrive(lease)
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
            _learn_output(known, lease, counts, completion, now=now)
            known.caches.occupy(destination, known.blocks(completion, model=request.model))
        pace.learn_length(known, lease, completion_tokens=completion)
    if counts.prompt_tokens is not None and _is_countable(request.parsed):
        known.bytes_per_token.observe(
            request.model,
            prompt_bytes=request.parsed.prompt_bytes,
            prompt_tokens=counts.prompt_tokens,
        )


def _is_countable(parsed: ParsedBody) -> bool:
    """Whether the prompt's bytes say something about bytes per token."""
    return not (parsed.has_exact_tokens or parsed.is_multimodal or parsed.degraded)


def after_reading(
    known: Knowledge, instance: Instance, signals: EngineSignals, *, now: float
) -> None:
    """One metrics page: load, the size of the cache, and whether the engine was started anew."""
    restarted = known.engines.observe(known.table, instance, signals, now=now)
    if restarted:
        known.cool(instance.row)
        known.caches.restarted(instance, now=now)
        known.table.trust[instance.row] = 1.0
    known.caches.read(known.table, instance, signals)
    if signals.kv_capacity_tokens is not None:
        known.index.set_capacity(instance.slot, known.blocks(signals.kv_capacity_tokens))


def after_check(known: Knowledge, row: int, *, matches: bool, now: float) -> None:
    """A probe's tokens were compared: keys of other tokens are not those of the engine's cache."""
    instance = known.table.instances[row]
    if matches:
        known.findings.settle("tokeniser-mismatch", instance)
        return
    trust.distrust(known.table, row)
    message = (
        f"{instance.spec.id} makes other tokens of the probe conversation than this router: its"
        " chat template or tokenizer is not the one that prompts are identified with here."
    )
    known.findings.tell("tokeniser-mismatch", instance, message, now=now)


def _confirm(known: Knowledge, instance: Instance, lease: Lease) -> None:
    known.caches.confirm(instance, lease.request.parsed)


def _close_breaker(known: Knowledge, instance: Instance) -> None:
    if not len(known.breakers):
        return
    kind = known.breakers.of(instance).last_kind
    if known.breakers.succeed(instance):
        known.news.breaker(instance, kind or "connect", seconds=None)
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
    began, instance = lease.began_at, lease.prompt_instance
    known.caches.learned(
        known.table,
        instance,
        lease,
        cached_tokens=cached_tokens,
        seconds=seconds,
        now=began + (seconds or 0.0),
    )
    if seconds is None or prompt_tokens is None:
        return
    if cached_tokens is None and predicted.indexed_tokens > 0:
        # How much was computed is a guess: nothing to learn a speed from.
        return
    computed = prompt_tokens - (cached_tokens or 0)
    pace.after_prompt(known, lease, computed_tokens=computed, seconds=seconds)


def _learn_output(
    known: Knowledge, lease: Lease, counts: Counts, completion: int, *, now: float
) -> None:
    """Decoding, or both phases where the answer came as a whole with counts that tell its work."""
    if lease.first_token_at is not None:
        pace.after_output(known, lease, completion_tokens=completion, now=now)
        return
    prompt, cached = counts.prompt_tokens, counts.cached_tokens
    indexed = lease.decision.predicted.indexed_tokens
    if prompt is not None and (cached is not None or indexed <= 0):
        pace.after_whole_answer(
            known,
            lease,
            computed_tokens=prompt - (cached or 0),
            completion_tokens=completion,
            now=now,
        )
