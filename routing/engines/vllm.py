"""vLLM: its metrics page, the usage in its answers, and the two legs of NIXL prefill/decode.

Written against vLLM 0.32.0. Metric names and labels: its `/metrics` page, recorded idle, under load
and in a prefill/decode pair. NIXL legs: recorded requests and answers of such a pair; the client
(here the router) sends the prompt to the prefill engine with `do_remote_decode`, and the answer's
`kv_transfer_params`, unchanged, to the decode engine, which pulls the KV.

Several engine cores behind one server show one series per `engine` label: counts are summed, the KV
use is weighted by the cores' capacity.
"""

import re

import msgspec

from routing.core.event_decoding import EventDecoder
from routing.core.metrics_page import labels_of, latest, series, total, whole
from routing.core.signals import EngineSignals
from routing.engines._vllm_adapters import adapters_of, resident_adapters
from routing.engines.base import (
    AnswerError,
    Engine,
    InTurn,
    OpenAiUsage,
    PrefillAnswer,
    TokenUsage,
    append_member,
    join_members,
    members_of,
    metered_body,
    raw,
    token_usage,
    usage_of,
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
_CONFIG = b"vllm:cache_config_info"


class _PrefillParams(msgspec.Struct):
    remote_prefill_cached_tokens: int | None = None


class _PrefillAnswer(msgspec.Struct):
    usage: OpenAiUsage | None = None
    kv_transfer_params: msgspec.Raw = msgspec.Raw(b"null")


_PREFILL_ANSWER = msgspec.json.Decoder(_PrefillAnswer)
_PREFILL_PARAMS = msgspec.json.Decoder(_PrefillParams)


class Vllm:
    """vLLM's OpenAI server."""

    slug = "vllm"
    metrics_path = "/metrics"
    loads_path: str | None = None

    def signals(self, page: bytes) -> EngineSignals:
        """See Engine.signals. Only the needed lines are looked at."""
        cores = _cache_configs(page)
        return EngineSignals(
            running=whole(total(page, b"vllm:num_requests_running")),
            waiting=whole(total(page, b"vllm:num_requests_waiting")),
            kv_usage=_kv_usage(page, cores),
            kv_capacity_tokens=_capacity(cores),
            block_size_tokens=_block_size(cores),
            prefix_queries_total=total(page, b"vllm:prefix_cache_queries_total"),
            prefix_hits_total=total(page, b"vllm:prefix_cache_hits_total"),
            prompt_tokens_total=total(page, b"vllm:prompt_tokens_total"),
            generation_tokens_total=total(page, b"vllm:generation_tokens_total"),
            process_start=latest(page, b"vllm:prompt_tokens_created"),
            adapters=adapters_of(page),
        )

    def waiting_tokens(self, report: bytes) -> int | None:
        """vLLM reports waiting requests only."""
        return None

    def resident_adapters(self, models: bytes) -> frozenset[str] | None:
        """Entries with a parent; idle ones too, which the metrics page leaves out."""
        return resident_adapters(models)

    def event_decoder(self) -> EventDecoder:
        """vLLM's events have the common form."""
        return EventDecoder()

    def usage(self, answer: bytes) -> TokenUsage | None:
        """See Engine.usage."""
        return usage_of(answer)

    def metered_body(self, body: bytes) -> bytes:
        """See Engine.metered_body."""
        return metered_body(body)

    @property
    def in_turn(self) -> InTurn:
        """NIXL: the decode engine pulls what the prefill engine keeps for it."""
        return self

    @property
    def at_once(self) -> None:
        """See Engine.at_once."""
        return None

    def prefill_body(self, body: bytes) -> bytes:
        """One token, not streamed, KV kept for another engine."""
        members = members_of(body)
        members.pop("stream_options", None)
        one = raw(1)
        # Only Responses call the prompt so, and the limit of their output.
        limit = "max_output_tokens" if "input" in members else "max_tokens"
        members |= {"stream": raw(value=False), limit: one}
        members |= {
            name: one for name in ("max_completion_tokens", "min_tokens") if name in members
        }
        members["kv_transfer_params"] = raw(_REMOTE_DECODE)
        return join_members(members)

    def prefill_answer(self, answer: bytes) -> PrefillAnswer:
        """See InTurn.prefill_answer."""
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
        usage = token_usage(found.usage) if found.usage else TokenUsage()
        if ticket.remote_prefill_cached_tokens is not None:
            usage = msgspec.structs.replace(
                usage, cached_tokens=ticket.remote_prefill_cached_tokens
            )
        return PrefillAnswer(kv_transfer_params=params, usage=usage)

    def decode_body(self, body: bytes, kv_transfer_params: bytes) -> bytes:
        """See InTurn.decode_body. A client's own `kv_transfer_params` must be refused before."""
        return append_member(body, "kv_transfer_params", kv_transfer_params)


def _core(labels: bytes) -> bytes:
    match = _ENGINE.search(labels)
    return match[1] if match else b""


def _cache_configs(page: bytes) -> dict[bytes, dict[bytes, bytes]]:
    """Cache configuration labels of each engine core."""
    return {_core(labels): labels_of(labels) for labels, _ in series(page, _CONFIG)}


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
    found = series(page, b"vllm:kv_cache_usage_perc") or series(page, b"vllm:gpu_cache_usage_perc")
    if not found:
        return None
    weights = [_core_capacity(cores.get(_core(labels), {})) for labels, _ in found]
    known = [weight for weight in weights if weight]
    if len(known) < len(found):
        known = [1] * len(found)
    used = sum(weight * value for weight, (_, value) in zip(known, found, strict=True))
    return used / sum(known)


ENGINE: Engine = Vllm()
