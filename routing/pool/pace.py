"""What requests teach about speed, and what became of the predictions."""

from routing.core.lease import Lease
from routing.core.table import Instance
from routing.pool.knowledge import Knowledge
from routing.producers.lengths import OUTLIVED_BY
from routing.producers.speeds import STRETCH_SECONDS, STRETCH_TOKENS

LOAD_STEP = 0.1
LOAD_RANGE = (0.1, 10.0)


def after_tokens(known: Knowledge, lease: Lease, count: int, *, now: float) -> None:
    """Output came: a long enough stretch of it tells the step time, long before the end."""
    known.leases.tokens(known.table, lease, count)
    if lease.output_seen >= lease.output_tokens:
        _outlived(known, lease, now=now)
    if lease.stretch_tokens < STRETCH_TOKENS or lease.stretch_at is None:
        return
    if now - lease.stretch_at >= STRETCH_SECONDS and known.speeds.is_due(lease, now=now):
        known.table.integrate(lease.destination.row, now)
        known.speeds.observe_decode(known.table, lease, output_tokens=lease.stretch_tokens, now=now)
        known.leases.start_stretch(known.table, lease, now=now)


def _outlived(known: Knowledge, lease: Lease, *, now: float) -> None:
    """The answer is longer than expected: it, and others like it, will go on for a while."""
    request, seen = lease.request, lease.output_seen
    choices = request.parsed.n
    most = request.parsed.max_tokens
    if most is not None and seen >= most * choices:
        return
    known.lengths.outlived(request.tenant, request.model, seen // choices, again=lease.outlived > 0)
    expected = int(OUTLIVED_BY * seen) + 1
    if most is not None:
        expected = min(expected, most * choices)
    known.leases.outlive(known.table, lease, expected=expected, now=now)


def learn_length(known: Knowledge, lease: Lease, *, completion_tokens: int) -> None:
    """The answer has ended; one that was counted as longer than expected is not counted twice."""
    request = lease.request
    if not request.parsed.has_output:
        return
    tokens = max(1, completion_tokens // request.parsed.n)
    expected = known.lengths.expected(request.tenant, request.model, maximum=None)
    if not (lease.outlived and tokens > expected):
        known.lengths.observe(request.tenant, request.model, tokens)


def after_first_token(known: Knowledge, lease: Lease, *, now: float) -> None:
    """A fresh process is warm now, and the time to the first token is known."""
    predicted, seen = lease.decision.predicted, now - lease.began_at
    known.predictions.observe(
        lease.prompt_instance, "ttft", predicted=predicted.ttft_seconds, seen=seen
    )
    if known.table.has_cold:
        excess = seen - predicted.ttft_seconds
        for instance in {lease.prompt_instance, lease.destination}:
            _answered(known, instance, excess if lease.prefill is None else None)


def _answered(known: Knowledge, instance: Instance, excess: float | None) -> None:
    table, row = known.table, instance.row
    if row >= 0 and table.warm_up_seconds[row] > 0:
        known_excess = None
        if excess is not None and excess == excess:
            # The prediction had the warm-up in it.
            known_excess = excess + float(table.warm_up_seconds[row])
        known.warm_up.answered(table, instance, excess_seconds=known_excess)


def after_prompt(known: Knowledge, lease: Lease, *, computed_tokens: int, seconds: float) -> None:
    """A prompt was computed in `seconds`; the part of it that was KV loaded is told apart."""
    predicted, row = lease.decision.predicted, lease.prompt_instance.row
    if row < 0:
        return
    lease.at_begin["admission"] = predicted.admission_seconds
    if predicted.load_seconds > 0:
        _learn_load(known, row, seconds=seconds, lease=lease)
        return
    if known.table.warm_up_seconds[row] > 0:
        return
    known.speeds.observe_prefill(
        known.table, lease, computed_tokens=computed_tokens, seconds=seconds
    )


def _learn_load(known: Knowledge, row: int, *, seconds: float, lease: Lease) -> None:
    """What is not explained by the rest of the prediction is the time of the load."""
    predicted, table = lease.decision.predicted, known.table
    rest = predicted.ttft_seconds - predicted.load_seconds
    if not rest >= 0:
        return
    factor = float(table.load_factor[row])
    seen = factor * (seconds - rest) / predicted.load_seconds
    seen = min(max(seen, LOAD_RANGE[0]), LOAD_RANGE[1])
    table.load_factor[row] = factor + LOAD_STEP * (seen - factor)


def after_output(known: Knowledge, lease: Lease, *, completion_tokens: int, now: float) -> None:
    """A streamed answer is complete: its last stretch, and its time per token."""
    first = lease.first_token_at
    if first is None or not lease.destination.is_alive:
        return
    table = known.table
    table.integrate(lease.destination.row, now)
    # Where no stream was counted, the engine's own count is the stretch.
    tokens = lease.stretch_tokens if lease.output_seen else completion_tokens - 1
    known.speeds.observe_decode(table, lease, output_tokens=tokens, now=now)
    if completion_tokens > 1:
        known.predictions.observe(
            lease.destination,
            "tpot",
            predicted=lease.decision.predicted.tpot_seconds,
            seen=(now - first) / (completion_tokens - 1),
        )


def after_whole_answer(
    known: Knowledge, lease: Lease, *, computed_tokens: int, completion_tokens: int, now: float
) -> None:
    """An answer without a stream is complete: both phases in one time."""
    if lease.prefill is not None or not lease.destination.is_alive:
        return
    lease.at_begin["admission"] = lease.decision.predicted.admission_seconds
    known.table.integrate(lease.destination.row, now)
    known.speeds.observe_whole(
        known.table,
        lease,
        computed_tokens=computed_tokens,
        output_tokens=completion_tokens,
        now=now,
    )
