"""SGLang: its metrics page, its load report, and the usage in its answers.

Written from SGLang's sources and documentation, not verified against a running server. Metric names
carry the prefix `sglang:` and labels per scheduler. With data-parallel attention each rank has its
own `dp_rank`: counts are summed over ranks. A server told to report all its schedulers repeats the
same figure for each tensor-parallel rank, so within one `dp_rank` the greatest counts once.

`GET /v1/loads` says what waits in tokens, which its metrics page does not.

Cache events are arrays of vLLM's form with a page as block, without extra keys. With speculative
decoding by pairs (EAGLE) the cache is keyed by pairs of neighbouring tokens, and `token_ids` holds
these: the first of each pair is the prompt.
"""

from collections.abc import Iterable

import msgspec

from routing.core.event_decoding import EventDecoder
from routing.core.kv_events import EventDecodeError, Stored
from routing.core.metrics_page import Series, labels_of, series, whole
from routing.core.signals import EngineSignals
from routing.engines.base import (
    AtOnce,
    Engine,
    Meeting,
    TokenUsage,
    append_member,
    batch_of,
    metered_body,
    raw,
    usage_of,
)

_QUEUES = (
    b"sglang:num_queue_reqs",
    b"sglang:num_prefill_prealloc_queue_reqs",
    b"sglang:num_decode_prealloc_queue_reqs",
    b"sglang:num_decode_transfer_queue_reqs",
)
"""The plain queue, and those in which requests of a prefill/decode pair wait."""


class _Load(msgspec.Struct):
    num_running_reqs: int | None = None
    num_waiting_reqs: int | None = None
    num_waiting_uncached_tokens: int | None = None
    max_total_num_tokens: int | None = None


class _Loads(msgspec.Struct):
    loads: list[_Load] = []


_LOADS = msgspec.json.Decoder(_Loads)


class Sglang:
    """SGLang's OpenAI server."""

    slug = "sglang"
    metrics_path = "/metrics"
    loads_path: str | None = "/v1/loads?include=core"

    def signals(self, page: bytes) -> EngineSignals:
        """See Engine.signals. Only the needed lines are looked at."""
        queues = [found for name in _QUEUES if (found := _over_ranks(page, name)) is not None]
        return EngineSignals(
            running=whole(_over_ranks(page, b"sglang:num_running_reqs")),
            waiting=whole(sum(queues)) if queues else None,
            kv_usage=_token_usage(page),
            kv_capacity_tokens=_capacity(page),
            block_size_tokens=_positive(page, b"page_size"),
            # Counted in tokens of prompts, as vLLM's prefix cache queries are.
            prefix_queries_total=_over_ranks(page, b"sglang:prompt_tokens_total"),
            prefix_hits_total=_over_ranks(page, b"sglang:cached_tokens_total"),
            prompt_tokens_total=_over_ranks(page, b"sglang:prompt_tokens_total"),
            generation_tokens_total=_over_ranks(page, b"sglang:generation_tokens_total"),
        )

    def waiting_tokens(self, report: bytes) -> int | None:
        """Uncached prompt tokens that wait, over all ranks of `loads_path`'s answer."""
        try:
            loads = _LOADS.decode(report).loads
        except msgspec.DecodeError:
            return None
        waiting = [load.num_waiting_uncached_tokens for load in loads]
        known = [tokens for tokens in waiting if tokens is not None]
        return sum(known) if known and len(known) == len(waiting) else None

    def resident_adapters(self, models: bytes) -> frozenset[str] | None:
        """Not known how SGLang lists them."""
        return None

    def event_decoder(self) -> EventDecoder:
        """Arrays without extra keys; caches of token pairs publish pairs."""
        return EventDecoder(adjust=_plain_tokens)

    def usage(self, answer: bytes) -> TokenUsage | None:
        """See Engine.usage; `cached_tokens` needs `--enable-cache-report`."""
        return usage_of(answer)

    def metered_body(self, body: bytes) -> bytes:
        """See Engine.metered_body."""
        return metered_body(body)

    @property
    def in_turn(self) -> None:
        """See Engine.in_turn."""
        return None

    @property
    def at_once(self) -> AtOnce:
        """Bootstrap: the decode engine asks the prefill engine's bootstrap server for the room."""
        return self

    def meeting_body(self, body: bytes, meeting: Meeting) -> bytes:
        """Three members more; for a batch of prompts lists of them, one element for each."""
        count = batch_of(body)
        host, port = raw(meeting.host), raw(meeting.port)
        if count is None:
            values = {"bootstrap_host": host, "bootstrap_port": port}
            values["bootstrap_room"] = raw(meeting.draw_room())
        else:
            values = {
                "bootstrap_host": raw([meeting.host] * count),
                "bootstrap_port": raw([meeting.port] * count),
                "bootstrap_room": raw([meeting.draw_room() for _ in range(count)]),
            }
        for name, value in values.items():
            body = append_member(body, name, bytes(value))
        return body


def _plain_tokens(event: Stored) -> None:
    """Replace pairs of tokens by the first of each, be they lists or flat at double length."""
    ids, tokens = event.token_ids, event.block_size * len(event.block_hashes)
    if ids and isinstance(ids[0], list):
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in ids):
            raise EventDecodeError("token_ids holds lists that are not pairs.")
        event.token_ids = [pair[0] for pair in ids]
    elif tokens and len(ids) == 2 * tokens:
        event.token_ids = ids[::2]


def _ranks(found: Series) -> dict[bytes, list[tuple[dict[bytes, bytes], float]]]:
    ranks: dict[bytes, list[tuple[dict[bytes, bytes], float]]] = {}
    for head, value in found:
        labels = labels_of(head)
        ranks.setdefault(labels.get(b"dp_rank", b""), []).append((labels, value))
    return ranks


def _of_rank(samples: Iterable[tuple[dict[bytes, bytes], float]]) -> float:
    """One rank's figure: repeated per tensor-parallel rank, split by other labels."""
    split: dict[tuple[bytes, bytes, bytes], float] = {}
    for labels, value in samples:
        repeated = (
            labels.get(b"tp_rank", b""),
            labels.get(b"pp_rank", b""),
            labels.get(b"moe_ep_rank", b""),
        )
        split[repeated] = split.get(repeated, 0.0) + value
    return max(split.values())


def _over_ranks(page: bytes, name: bytes) -> float | None:
    """Sum over data-parallel ranks, `None` when the metric is absent."""
    ranks = _ranks(series(page, name))
    return sum(map(_of_rank, ranks.values())) if ranks else None


def _token_usage(page: bytes) -> float | None:
    """Share of KV tokens in use, 0 to 1: the mean over ranks, which have equal pools."""
    ranks = _ranks(series(page, b"sglang:token_usage"))
    if not ranks:
        return None
    return sum(max(value for _, value in samples) for samples in ranks.values()) / len(ranks)


def _capacity(page: bytes) -> int | None:
    """KV tokens that all ranks hold together."""
    stated = _over_ranks(page, b"sglang:max_total_num_tokens")
    if stated:
        return round(stated)
    size, pages = _positive(page, b"page_size"), _positive(page, b"num_pages")
    ranks = len(_ranks(series(page, b"sglang:cache_config_info")))
    return size * pages * ranks if size and pages else None


def _positive(page: bytes, label: bytes) -> int | None:
    """A label of the cache configuration that holds a positive number."""
    for head, _ in series(page, b"sglang:cache_config_info"):
        text = labels_of(head).get(label, b"")
        if text.isdigit() and 0 < int(text) < 2**53:
            return int(text)
    return None


ENGINE: Engine = Sglang()
