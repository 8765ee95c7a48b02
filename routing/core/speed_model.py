"""How an endpoint's time follows from its work: parts in seconds, each with a factor to be learned.

Prefill of `t` tokens of which each sees a mean context of `x` tokens, at a step time `s`:

    seconds = f0 * t * (1 - ATTENTION_SHARE) / rate           linear part
            + f1 * t * x * ATTENTION_SHARE / (rate * x0)      attention; x0 = REFERENCE_CONTEXT
            + f2 * s * t / CHUNK_TOKENS                       steps of the others in each chunk
            + f3 * s                                          steps until the first token shows
            + f4 * NETWORK_SECONDS                            way there, tokenising, way back

Time per output token with `n` sequences and `c` tokens of context in the batch:

    seconds = g0 * step + g1 * step_per_sequence * n + g2 * step_per_context_token * c

The rates and steps are the class's prior, so that every factor is 1 where the prior is right.

- `ATTENTION_SHARE` 0.08: of granite-4.1-8b's FLOPs at a prompt of 4,096 tokens (16.76 G a token and
  655,360 per token of context); 0.05 to 0.15 for dense models of 8 to 70 B with grouped queries.
- `CHUNK_TOKENS` 2048: vLLM's default `max_num_batched_tokens`; tuned engines have up to 16,384.
- `NETWORK_SECONDS` 10 ms: HTTP, tokenising and detokenising of vLLM were 20 ms in published runs.
"""

from routing.core.specs.endpoints import SpeedPrior

ATTENTION_SHARE = 0.08
REFERENCE_CONTEXT = 2048.0
"""Mean context of a token in a prompt of 4,096."""
CHUNK_TOKENS = 2048.0
ATTENDED_SHARE = 0.75
"""Of a prompt's length that its computed tokens attend to, between cold (0.5) and cached (1)."""
NETWORK_SECONDS = 0.010
PREFILL_FACTORS, DECODE_FACTORS = 5, 3

COLUMNS = (
    "prefill_seconds_per_token",
    "prefill_seconds_per_token_and_context",
    "prefill_steps_per_token",
    "first_step_factor",
    "network_seconds",
    "step_seconds",
    "step_seconds_per_sequence",
    "step_seconds_per_context_token",
)
"""Columns of the endpoint table that `coefficients` fills, in its order."""


def coefficients(prior: SpeedPrior) -> tuple[float, ...]:
    """What the columns hold when all factors are 1."""
    per_token = 1.0 / prior.prefill_tokens_per_second
    return (
        per_token * (1.0 - ATTENTION_SHARE),
        per_token * ATTENTION_SHARE / REFERENCE_CONTEXT,
        1.0 / CHUNK_TOKENS,
        1.0,
        NETWORK_SECONDS,
        prior.step_seconds,
        prior.step_seconds_per_sequence,
        prior.step_seconds_per_context_token,
    )


def prefill_parts(
    prior: SpeedPrior, *, tokens: float, context: float, step: float
) -> tuple[float, ...]:
    """Seconds that the prior gives each part of a prefill; `context` is the mean per token."""
    linear, attention, steps, first, network, *_ = coefficients(prior)
    return (
        linear * tokens,
        attention * tokens * context,
        steps * tokens * step,
        first * step,
        network,
    )


def decode_parts(prior: SpeedPrior, *, sequences: float, context: float) -> tuple[float, ...]:
    """Seconds that the prior gives each part of a step; `context` is the batch's sum."""
    return (
        prior.step_seconds,
        prior.step_seconds_per_sequence * sequences,
        prior.step_seconds_per_context_token * context,
    )
