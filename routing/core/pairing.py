"""Whether two endpoints can hand over KV, by their contracts, with the reason and the cost.

Rules: vLLM's NIXL handshake compares engine and connector version, model, KV dtype, heads, head
size and attention backend, then block size, layout and parallelism. Another attention backend or
layout works only through host memory (`staging_device: cpu` on both ends). A field that one side
does not state makes the verdict unknown: unknown is never taken for equal.
"""

from dataclasses import dataclass
from typing import Literal

from routing.core.document import KvContract

Verdict = Literal["compatible", "compatible_with", "incompatible", "unknown"]

_MUST_AGREE = (
    "engine",
    "engine_version",
    "connector",
    "connector_version",
    "model_revision",
    "kv_dtype",
    "kv_heads",
    "head_size",
    "tensor_parallel",
    "pipeline_parallel",
    "transport",
    "fabric",
)
_OR_STAGED = ("attention_backend", "layout", "block_size_tokens")

HOST_STAGING_SLOWDOWN = 3.0
"""KV copied device to host, sent, copied host to device: three passes instead of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairVerdict:
    """`compatible_with` names the staging it needs. `seconds_per_1000_tokens` None is unknown."""

    verdict: Verdict
    reason: str
    staging: str | None = None
    missing: tuple[str, ...] = ()
    seconds_per_1000_tokens: float | None = None


def pair(prefill: KvContract, decode: KvContract, *, kv_bytes_per_token: int) -> PairVerdict:
    """Judge the hand-over from `prefill` to `decode`; pure and total.

    The transfer cost is bytes divided by the slower end's link rate, times
    HOST_STAGING_SLOWDOWN when staged.
    """
    for name in _MUST_AGREE:
        ours, theirs = getattr(prefill, name), getattr(decode, name)
        if ours is not None and theirs is not None and ours != theirs:
            return PairVerdict(verdict="incompatible", reason=_differs(name, ours, theirs))
    differing = [name for name in _OR_STAGED if _both_known_and_differ(prefill, decode, name)]
    staged_ends = (prefill.staging_device == "cpu") + (decode.staging_device == "cpu")
    staged = staged_ends > 0
    if differing and staged_ends < 2:
        name = differing[0]
        reason = _differs(name, getattr(prefill, name), getattr(decode, name))
        return PairVerdict(
            verdict="incompatible",
            reason=f"{reason} Both ends must stage through host memory, and do not.",
        )
    missing = _missing(prefill, decode)
    if missing:
        return PairVerdict(
            verdict="unknown",
            reason=f"Not stated on both ends: {', '.join(missing)}.",
            missing=missing,
            seconds_per_1000_tokens=_cost(prefill, decode, kv_bytes_per_token, staged=staged),
        )
    cost = _cost(prefill, decode, kv_bytes_per_token, staged=staged)
    if staged:
        why = f" because {', '.join(differing)} differ" if differing else ""
        return PairVerdict(
            verdict="compatible_with",
            reason=f"KV passes through host memory{why}.",
            staging="cpu",
            seconds_per_1000_tokens=cost,
        )
    return PairVerdict(
        verdict="compatible",
        reason="Every field of the contract agrees.",
        seconds_per_1000_tokens=cost,
    )


def of_other_groups(prefill: str | None, decode: str | None) -> PairVerdict:
    """The verdict on two ends that do not belong to one role group."""
    return PairVerdict(
        verdict="incompatible",
        reason=(
            f"The prefill end is in {_group(prefill)}, the decode end in {_group(decode)}; pairs"
            " are made within one role group."
        ),
    )


def _group(name: str | None) -> str:
    return "no role group" if name is None else f"role group '{name}'"


def _differs(name: str, ours: object, theirs: object) -> str:
    return f"{name} differs: {ours} at the prefill end, {theirs} at the decode end."


def _both_known_and_differ(prefill: KvContract, decode: KvContract, name: str) -> bool:
    ours, theirs = getattr(prefill, name), getattr(decode, name)
    return ours is not None and theirs is not None and ours != theirs


def _missing(prefill: KvContract, decode: KvContract) -> tuple[str, ...]:
    return tuple(
        name
        for name in (*_MUST_AGREE, *_OR_STAGED)
        if getattr(prefill, name) is None or getattr(decode, name) is None
    )


def _cost(
    prefill: KvContract, decode: KvContract, kv_bytes_per_token: int, *, staged: bool
) -> float | None:
    rates = (prefill.transfer_bytes_per_second, decode.transfer_bytes_per_second)
    if rates[0] is None or rates[1] is None:
        return None
    passes = HOST_STAGING_SLOWDOWN if staged else 1.0
    return 1000 * kv_bytes_per_token / min(rates[0], rates[1]) * passes
