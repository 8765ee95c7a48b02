"""The time per token that an answer will see, as the batch changes while it is made.

A price takes the batch as it is. An answer of O tokens, which takes T = O * tpot seconds, shares
its steps with

    in flight = (R - d * ttft / tpot) / O    R: what they still expect; the d that decode at present
                                             make some of it before this answer begins
    coming    = l * T * w * (1 - w / 2)      l: arrivals per second, for a share w of T; who comes
                                             after a share u of it is there for the rest, 1 - u

so that, with `s` the step's fixed part and this answer's own, and `q` what one more sequence adds,

    tpot  = (s + q * (in flight + coming)) / (1 - share)
    share = seconds of prompts that are computed per second, fading while caches fill

which is linear in tpot but for w and the share. In a steady state it gives what a price does.

Nobody knows how long requests will go on coming. Half of all times they go on for longer than they
have done so far, so w is the time since the pool was idle over T, at most 1.
"""

import math

from routing.core.speed_model import ATTENDED_SHARE
from routing.core.table import EndpointTable

MOST_SHARE = 0.6
"""Of its time that an endpoint is taken to spend on prompts at most."""
LEAST_ROOM = 0.5
"""Where more comes than can be carried the batch grows without end: not within one answer."""
PASSES = 2
"""How often T is put in for what follows from it; at first it is that of the batch as it is."""


def tpot_seconds(
    table: EndpointTable,
    row: int,
    *,
    prompt_tokens: int,
    output_tokens: int,
    ttft: float,
    priced: float,
) -> float:
    """Expected seconds per token of an answer that begins at an endpoint after `ttft` seconds.

    `priced` is the time per token in the batch as it is; its ramp of a fresh endpoint is kept.
    Without output, or where nothing is priced, it is returned as it is.
    """
    if output_tokens < 1 or not priced > 0:
        return priced
    base = table.step_seconds.item(row)
    per_sequence = table.step_seconds_per_sequence.item(row)
    per_token = table.step_seconds_per_context_token.item(row)
    others, ours = table.others.item(row), table.sequences.item(row)
    own = prompt_tokens + output_tokens / 2
    typical = table.context_tokens.item(row) / ours if ours > 0 else own
    alone = base + per_sequence + per_token * own
    added = per_sequence + per_token * typical
    now = (alone + added * (ours + others)) * table.stretch.item(row)
    made = max(ours - table.unstarted.item(row), 0.0) * max(ttft, 0.0) / priced
    staying = min(max(table.remaining_tokens.item(row) - made, 0.0) / output_tokens, ours) + others
    prompts = table.prompt_rate.item(row) * (
        table.prefill_seconds_per_token.item(row)
        + table.prefill_seconds_per_token_and_context.item(row) * typical * ATTENDED_SHARE
    )
    coming = added * table.arrival_rate.item(row) * output_tokens
    fading, since = table.prompt_fading.item(row), table.arriving_seconds.item(row)
    most = alone + added * table.max_sequences.item(row)
    found = now
    for _ in range(PASSES):
        seconds = output_tokens * found
        lasting = min(since / seconds, 1.0)
        share = min(prompts * math.exp(-fading * seconds) * lasting, MOST_SHARE)
        growth = coming * lasting * (1.0 - lasting / 2.0)
        step = (alone + added * staying) / max(1.0 - growth / (1.0 - share), LEAST_ROOM)
        found = min(step, most) / (1.0 - share)
    return priced * found / now
