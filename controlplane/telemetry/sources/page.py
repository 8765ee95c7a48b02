"""Counters of an engine's metrics page that routing does not need and accounting does.

Names of vLLM 0.32; an engine without a counter gives None for it. Several engine cores behind one
server have a series each; series are summed.
"""

import re

from controlplane.telemetry.counters import Counters
from routing.core.signals import EngineSignals

_BY_SOURCE = b"vllm:prompt_tokens_by_source_total"
_PREFILL_SECONDS = b"vllm:request_prefill_time_seconds_sum"
_DECODE_SECONDS = b"vllm:request_decode_time_seconds_sum"
_SOURCE = re.compile(rb'[{,]source="([^"]*)"')


def counters(page: bytes, signals: EngineSignals) -> Counters:
    """All counters of one page; None is a counter that the page does not have."""
    by_source = _by_source(page)
    return Counters(
        prompt_tokens=_whole(signals.prompt_tokens_total),
        prompt_computed_tokens=_whole(by_source.get(b"local_compute")),
        prompt_cached_tokens=_whole(by_source.get(b"local_cache_hit")),
        prompt_transferred_tokens=_whole(by_source.get(b"external_kv_transfer")),
        generation_tokens=_whole(signals.generation_tokens_total),
        prefix_queries=_whole(signals.prefix_queries_total),
        prefix_hits=_whole(signals.prefix_hits_total),
        prefill_seconds=_total(page, _PREFILL_SECONDS),
        decode_seconds=_total(page, _DECODE_SECONDS),
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _lines(page: bytes, name: bytes) -> list[bytes]:
    needle = b"\n" + name
    found = []
    start = page.find(needle)
    while start >= 0:
        end = page.find(b"\n", start + 1)
        end = end if end >= 0 else len(page)
        line = page[start + 1 : end]
        if line[len(name) : len(name) + 1] in (b"{", b" "):
            found.append(line)
        start = page.find(needle, end)
    return found


def _value(line: bytes) -> float:
    labels = line.rfind(b"}")
    rest = line[labels + 1 :] if labels >= 0 else line.partition(b" ")[2]
    return float(rest.split()[0])


def _total(page: bytes, name: bytes) -> float | None:
    lines = _lines(page, name)
    return sum(_value(line) for line in lines) if lines else None


def _by_source(page: bytes) -> dict[bytes, float]:
    totals: dict[bytes, float] = {}
    for line in _lines(page, _BY_SOURCE):
        match = _SOURCE.search(line)
        if match:
            totals[match[1]] = totals.get(match[1], 0.0) + _value(line)
    return totals
