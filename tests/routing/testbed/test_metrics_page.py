"""The metrics page: names, types and labels of the captured pages."""

import re

import httpx
import pytest

from routing.testbed.metrics_page import number
from tests.routing.testbed.conftest import StartEngine
from tests.routing.testbed.helpers import SAMPLES, completion, metric, url

READ_BY_ROUTERS = (
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
    "vllm:cache_config_info",
    "vllm:prefix_cache_queries_total",
    "vllm:prefix_cache_hits_total",
    "vllm:prompt_tokens_total",
    "vllm:generation_tokens_total",
    "vllm:nixl_num_kv_expired_reqs_total",
)


def captured_pages() -> str:
    """Both captured pages: under load, and of a decode engine after transfers."""
    names = ("metrics", "metrics-nixl")
    return "\n".join((SAMPLES / f"vllm-0.32.0-{name}.txt").read_text() for name in names)


def series(page: str) -> set[tuple[str, tuple[str, ...]]]:
    """Names with their label names (and values of `le`, `reason`, `source`, …), without numbers."""
    found = set()
    for line in page.splitlines():
        match = re.match(r"([a-z_:]+)(?:\{(.*)\})? ", line)
        if match and not line.startswith("#"):
            labels = re.findall(r'([a-z_]+)="([^"]*)"', match[2] or "")
            fixed = ("le", "reason", "source", "finished_reason", "sleep_state")
            found.add((match[1], tuple(f"{k}={v}" if k in fixed else k for k, v in labels)))
    return found


def test_numbers_are_written_as_the_client_library_writes_them() -> None:
    values = {94598: "94598.0", 0.00488: "0.00488", 2.097152e6: "2.097152e+06", 1e7: "1e+07"}

    assert {number(value) for value in values} == set(values.values())


async def test_every_series_is_one_that_vllm_has(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()
    await client.post(url(engine, "/v1/completions"), json=completion())

    page = (await client.get(url(engine, "/metrics"))).text

    ours = {item for item in series(page) if item[0] != "vllm:cache_config_info"}
    assert ours <= series(captured_pages())
    types = set(re.findall(r"^# TYPE .*$", page, re.M))
    assert types <= set(re.findall(r"^# TYPE .*$", captured_pages(), re.M))


@pytest.mark.parametrize("name", READ_BY_ROUTERS)
async def test_what_routers_read_is_there_from_the_start(
    name: str, start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    page = (await client.get(url(engine, "/metrics"))).text

    assert metric(page, name) >= 0


async def test_cache_config_tells_the_size_of_the_cache(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine(block_size=128, kv_tokens=128_000)

    page = (await client.get(url(engine, "/metrics"))).text

    line = next(line for line in page.splitlines() if line.startswith("vllm:cache_config_info{"))
    assert 'block_size="128"' in line
    assert 'num_gpu_blocks="1000"' in line
    assert 'kv_cache_size_tokens="128000"' in line


async def test_histograms_are_cumulative_and_end_in_their_count(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()
    for text in ("a", "b" * 400, "c" * 4000):
        await client.post(url(engine, "/v1/completions"), json=completion(text))

    page = (await client.get(url(engine, "/metrics"))).text

    buckets = re.findall(
        r'^vllm:request_prompt_tokens_bucket\{.*le="([^"]+)".*\} (\S+)$', page, re.M
    )
    counts = [float(count) for _, count in buckets]
    assert counts == sorted(counts)
    assert counts[-1] == metric(page, "vllm:request_prompt_tokens_count") == 3
    assert metric(page, "vllm:request_prompt_tokens_sum") == 1 + 100 + 1000
