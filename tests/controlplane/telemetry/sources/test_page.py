"""Counters read from recorded pages of vLLM 0.32."""

from pathlib import Path

from controlplane.telemetry.sources.page import counters
from routing.core.signals import EngineSignals
from routing.engines.vllm import ENGINE

SAMPLES = Path(__file__).parent / "samples"


def read(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def test_page_under_load() -> None:
    page = read("vllm-0.32-under-load.txt")

    found = counters(page, ENGINE.signals(page))

    assert found.prompt_tokens == 94_598
    assert found.prompt_computed_tokens == 54_534
    assert found.prompt_cached_tokens == 40_064
    assert found.prompt_transferred_tokens == 0
    assert found.prefix_queries == 94_598
    assert found.prefix_hits == 40_064
    assert round(found.prefill_seconds or 0, 3) == 41.509
    assert round(found.decode_seconds or 0, 3) == 52.558


def test_a_prompt_of_a_pair_is_computed_once() -> None:
    prefill = read("vllm-0.32-prefill-after.txt")
    decode = read("vllm-0.32-decode-after.txt")

    pair = [counters(page, ENGINE.signals(page)) for page in (prefill, decode)]

    assert sum(found.prompt_tokens or 0 for found in pair) == 7_933 + 4_763
    assert [found.prompt_computed_tokens for found in pair] == [7_549, 301]
    assert sum(found.prompt_cached_tokens or 0 for found in pair) == 384
    assert pair[1].prompt_transferred_tokens == 4_462


def test_series_of_several_engine_cores_are_summed() -> None:
    page = (
        b'\nvllm:prompt_tokens_by_source_total{engine="0",source="local_compute"} 5.0'
        b'\nvllm:prompt_tokens_by_source_total{engine="1",source="local_compute"} 7.0'
        b"\nvllm:request_prefill_time_seconds_sum 1.5\n"
    )

    found = counters(page, EngineSignals())

    assert found.prompt_computed_tokens == 12
    assert found.prefill_seconds == 1.5


def test_a_page_of_another_program_gives_unknown() -> None:
    found = counters(b"# nothing\nprocess_cpu_seconds_total 1\n", EngineSignals())

    assert set(found.as_dict().values()) == {None}
