"""vLLM: its metrics page, the usage in its answers, and the two legs of NIXL prefill/decode.

Written against vLLM 0.32.0. Metric names and labels: its `/metrics` page, recorded idle, under load
and in a prefill/decode pair. NIXL legs: recorded requests and answers of such a pair; the client
(here the router) sends the prompt to the prefill engine with `do_remote_decode`, and the answer's
`kv_transfer_params`, unchanged, to the decode engine, which pulls the KV.

Several engine cores behind one server show one series per `engine` label: counts are summed, the KV
use is weighted by the cores' capacity.
"""

import math
import re

import msgspec

from routing.core.signals import EngineSignals
from routing.engines.base import (
    AnswerError,
    Engine,
    PrefillAnswer,
    TokenUsage,
    append_member,
    join_members,
    members_of,
    raw,
)

_REMOTE_DECODE = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}
_ENGINE = re.compile(rb'[{,]engine="([^"]*)"')
_LABEL = re.compile(rb'(\w+)="([^"]*)"')
_CONFIG = b"vllm:cache_config_info"


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Answer(msgspec.Struct):
    usage: _Usage | None = None


class _PrefillParams(msgspec.Struct):
    remote_prefill_cached_tokens: int | None = None


class _PrefillAnswer(msgspec.Struct):
    usage: _Usage | None = None
    kv_transfer_params: msgspec.Raw = msgspec.Raw(b"null")


_ANSWER = msgspec.json.Decoder(_Answer)
_PREFILL_ANSWER = msgspec.json.Decoder(_PrefillAnswer)
_PREFILL_PARAMS = msgspec.json.Decoder(_PrefillParams)


class Vllm:
    """vLLM's OpenAI server."""

    slug = "vllm"
    metrics_path = "/metrics"

    def signals(self, page: bytes) -> EngineSignals:
        """See Engine.signals. Only the needed lines are looked at."""
        cores = _cache_configs(page)
        return EngineSignals(
            running=_whole(_total(page, b"vllm:num_requests_running")),
            waiting=_whole(_total(page, b"vllm:num_requests_waiting")),
            kv_usage=_kv_usage(page, cores),
            kv_capacity_tokens=_capacity(cores),
            block_size_tokens=_block_size(cores),
            prefix_queries_total=_total(page, b"vllm:prefix_cache_queries_total"),
            prefix_hits_total=_total(page, b"vllm:prefix_cache_hits_total"),
            prompt_tokens_total=_total(page, b"vllm:prompt_tokens_total"),
            generation_tokens_total=_total(page, b"vllm:generation_tokens_total"),
            process_start=_latest(page, b"vllm:prompt_tokens_created"),
        )

    def usage(self, answer: bytes) -> TokenUsage | None:
        """See Engine.usage."""
        try:
            found = _ANSWER.decode(answer).usage
        except msgspec.DecodeError:
            return None
        return None if found is None else _token_usage(found)

    def metered_body(self, body: bytes) -> bytes:
        """Ask for usage: one member more, or `include_usage` inside the client's own options."""
        members = members_of(body)
        options = members.get("stream_options")
        if options is None:
            return append_member(body, "stream_options", b'{"include_usage":true}')
        inner = members_of(bytes(options)) if bytes(options) != b"null" else {}
        members["stream_options"] = msgspec.Raw(
            join_members(inner | {"include_usage": raw(value=True)})
        )
        return join_members(members)

    def prefill_body(self, body: bytes) -> bytes:
        """One token, not streamed, KV kept for another engine."""
        members = members_of(body)
        members.pop("stream_options", None)
        one = raw(1)
        members |= {"stream": raw(value=False), "max_tokens": one}
        members |= {
            name: one for name in ("max_completion_tokens", "min_tokens") if name in members
        }
        members["kv_transfer_params"] = raw(_REMOTE_DECODE)
        return join_members(members)

    def prefill_answer(self, answer: bytes) -> PrefillAnswer:
        """See Engine.prefill_answer."""
        try:
            found = _PREFILL_ANSWER.decode(answer)
            params = bytes(found.kv_transfer_params)
            ticket = _PREFILL_PARAMS.decode(params) if params != b"null" else None
        except msgspec.DecodeError as error:
            raise AnswerError(f"The prefill answer cannot be read: {error}.") from error
        if ticket is None:
            raise AnswerError(
                "The prefill answer has no kv_transfer_params; was the engine started with a"
                " kv-transfer-config?"
            )
        usage = _token_usage(found.usage) if found.usage else TokenUsage()
        if ticket.remote_prefill_cached_tokens is not None:
            usage = msgspec.structs.replace(
                usage, cached_tokens=ticket.remote_prefill_cached_tokens
            )
        return PrefillAnswer(kv_transfer_params=params, usage=usage)

    def decode_body(self, body: bytes, kv_transfer_params: bytes) -> bytes:
        """See Engine.decode_body. A client's own `kv_transfer_params` must be refused before."""
        return append_member(body, "kv_transfer_params", kv_transfer_params)


def _token_usage(found: _Usage) -> TokenUsage:
    details = found.prompt_tokens_details
    return TokenUsage(
        prompt_tokens=found.prompt_tokens,
        completion_tokens=found.completion_tokens,
        cached_tokens=details.cached_tokens if details else None,
    )


def _series(page: bytes, name: bytes) -> list[tuple[bytes, float]]:
    """Labels and value of each sample of a metric; lines start with the name and `{`.

    Empty when one of them is no finite number: a part of a sum says nothing about the sum.
    """
    needle = b"\n" + name + b"{"
    found = []
    start = page.find(needle)
    while start >= 0:
        end = page.find(b"\n", start + 1)
        end = end if end >= 0 else len(page)
        labels, _, text = page[start + 1 : end].rpartition(b"} ")
        value = _finite(text.split(maxsplit=1))
        if value is None:
            return []
        found.append((labels, value))
        start = page.find(needle, end)
    return found


def _finite(words: list[bytes]) -> float | None:
    """The first word as a number; a time stamp may follow it."""
    try:
        value = float(words[0]) if words else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _total(page: bytes, name: bytes) -> float | None:
    series = _series(page, name)
    return sum(value for _, value in series) if series else None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _latest(page: bytes, name: bytes) -> float | None:
    return max((value for _, value in _series(page, name)), default=None)


def _core(labels: bytes) -> bytes:
    match = _ENGINE.search(labels)
    return match[1] if match else b""


def _cache_configs(page: bytes) -> dict[bytes, dict[bytes, bytes]]:
    """Cache configuration labels of each engine core."""
    return {_core(labels): dict(_LABEL.findall(labels)) for labels, _ in _series(page, _CONFIG)}


def _positive(config: dict[bytes, bytes], *names: bytes) -> int | None:
    """First of the named labels that holds a positive number; vLLM writes absent ones as None."""
    for name in names:
        text = config.get(name, b"")
        if text.isdigit() and int(text) > 0:
            return int(text)
    return None


def _core_capacity(config: dict[bytes, bytes]) -> int | None:
    tokens = _positive(config, b"kv_cache_size_tokens")
    blocks, size = _positive(config, b"num_gpu_blocks"), _positive(config, b"block_size")
    return tokens or (blocks * size if blocks and size else None)


def _capacity(cores: dict[bytes, dict[bytes, bytes]]) -> int | None:
    """Tokens that all cores hold together, `None` as soon as one of them does not say."""
    capacities = [_core_capacity(config) for config in cores.values()]
    known = [capacity for capacity in capacities if capacity is not None]
    return sum(known) if known and len(known) == len(capacities) else None


def _block_size(cores: dict[bytes, dict[bytes, bytes]]) -> int | None:
    """Effective block size; plugins may force one that differs from the argument."""
    sizes = [
        _positive(config, b"effective_attention_block_size", b"block_size")
        for config in cores.values()
    ]
    return sizes[0] if sizes else None


def _kv_usage(page: bytes, cores: dict[bytes, dict[bytes, bytes]]) -> float | None:
    """Share of KV blocks in use, 0 to 1, weighted by capacity where every core tells it."""
    series = _series(page, b"vllm:kv_cache_usage_perc") or _series(
        page, b"vllm:gpu_cache_usage_perc"
    )
    if not series:
        return None
    weights = [_core_capacity(cores.get(_core(labels), {})) for labels, _ in series]
    known = [weight for weight in weights if weight]
    if len(known) < len(series):
        known = [1] * len(series)
    used = sum(weight * value for weight, (_, value) in zip(known, series, strict=True))
    return used / sum(known)


ENGINE: Engine = Vllm()
