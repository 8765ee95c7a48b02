"""Whatever bytes come, a reader gives requests in order or refuses; it never ends otherwise."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from routing.simulator.workloads.readers.azure import HEADER, read_azure
from routing.simulator.workloads.readers.mooncake import read_mooncake
from routing.simulator.workloads.readers.reading import Reading, TraceError
from routing.simulator.workloads.readers.usage import read_usage

Reader = Callable[[bytes], Reading]

NUMBERS = st.one_of(
    st.integers(-5, 2000), st.integers(), st.floats(), st.text(max_size=5), st.none()
)
LINES = st.fixed_dictionaries(
    {},
    optional={
        "timestamp": NUMBERS,
        "input_length": NUMBERS,
        "output_length": NUMBERS,
        "hash_ids": st.one_of(NUMBERS, st.lists(NUMBERS, max_size=4)),
        "request_id": NUMBERS,
        "received_at": NUMBERS,
        "prompt_tokens": st.one_of(st.integers(0, 3000), NUMBERS),
        "cached_tokens": NUMBERS,
        "completion_tokens": st.one_of(st.integers(0, 30), NUMBERS),
        "tenant": NUMBERS,
        "request": st.one_of(NUMBERS, st.dictionaries(st.just("prefix"), NUMBERS)),
        "events": st.lists(st.dictionaries(st.just("request_id"), NUMBERS), max_size=2),
    },
)


def _checked(reader: Reader, raw: bytes) -> None:
    try:
        reading = reader(raw)
    except TraceError:
        return
    times = [request.at for request in reading.requests]
    assert times == sorted(times)
    assert times[0] == 0.0
    for request in reading.requests:
        prompt = request.prompt
        assert prompt.tokens >= 1
        assert request.output_tokens >= 1
        assert len(prompt.keys) == prompt.tokens // reading.block_tokens


@pytest.mark.parametrize("reader", [read_mooncake, read_azure, read_usage])
@given(raw=st.binary(max_size=200))
@example(raw=b"[" * 5000)
@example(raw=b'{"a":' * 5000)
@example(raw=b"\xef\xbb\xbf{}")
def test_any_bytes(reader: Reader, raw: bytes) -> None:
    _checked(reader, raw)


@pytest.mark.parametrize("reader", [read_mooncake, read_usage])
@given(lines=st.lists(LINES, max_size=4))
def test_any_objects(reader: Reader, lines: list[dict[str, Any]]) -> None:
    raw = "\n".join(json.dumps(line) for line in lines).encode("utf-8", "surrogatepass")

    _checked(reader, raw)


@given(rows=st.lists(st.lists(st.text(max_size=30), max_size=4), max_size=4))
def test_any_rows(rows: list[list[str]]) -> None:
    text = "\n".join(",".join(row) for row in rows)

    _checked(read_azure, HEADER + b"\n" + text.encode("utf-8", "surrogatepass"))


@given(
    year=st.sampled_from(["0001-01-01", "9999-12-31", "2023-11-16"]),
    clock=st.sampled_from(["00:00:00", "23:59:59.9999999", "00:00:00+23:59", "24:00:00"]),
)
def test_any_time(year: str, clock: str) -> None:
    _checked(read_azure, HEADER + f"\n{year} {clock},5,5".encode())
