"""Azure's format: times and lengths; what is shared is stated by the caller."""

import pytest

from routing.simulator.notes import Note
from routing.simulator.workloads.readers.azure import HEADER, Sharing, read_azure
from routing.simulator.workloads.readers.reading import Bounds, TraceError
from tests.routing.simulator.workloads.draws import shared_blocks

ROWS = (
    b"2023-11-16 18:17:03.9799600,4808,10\r\n"
    b"2023-11-16 18:17:04.0319601,3180,8\r\n"
    b"2023-11-16 18:17:05.9799600,110,0"
)
TRACE = HEADER + b"\r\n" + ROWS


def test_times_and_lengths() -> None:
    requests = read_azure(TRACE).requests

    assert [round(request.at, 6) for request in requests] == [0.0, 0.052, 2.0]
    assert [request.prompt.tokens for request in requests] == [4808, 3180, 110]
    # An answer has a token at least.
    assert [request.output_tokens for request in requests] == [10, 8, 1]


def test_times_with_an_offset_are_read_too() -> None:
    raw = HEADER + b"\n2024-05-10 00:00:00.009930+00:00,5,5\n2024-05-10 00:00:01.009930+00:00,5,5"

    assert read_azure(raw).requests[1].at == pytest.approx(1.0)


def test_nothing_is_shared_unless_it_is_stated() -> None:
    apart = read_azure(TRACE).requests
    alike = read_azure(TRACE, sharing=Sharing(share=0.5, groups=1)).requests

    assert shared_blocks(apart[0], apart[1]) == 0
    assert shared_blocks(alike[0], alike[1]) == 1590 // 64
    assert read_azure(TRACE).notes == (Note("stated-share", {"share": "0%"}),)


def test_a_limit_and_a_longest_prompt() -> None:
    reading = read_azure(TRACE, bounds=Bounds(limit=2, longest_tokens=4000))

    assert [request.prompt.tokens for request in reading.requests] == [4000, 3180]
    assert Note("cut-prompts", {"count": 1, "tokens": 4000}) in reading.notes


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        pytest.param(b"", "Line 1: The first line is not", id="empty"),
        pytest.param(ROWS, "Line 1: The first line is not", id="no-header"),
        pytest.param(HEADER, "holds no request", id="no-row"),
        pytest.param(TRACE + b"\n1,2", "Line 5: There are 2 columns", id="columns"),
        pytest.param(TRACE + b"\nx,2,3", "Line 5: A cell is no time", id="time"),
        pytest.param(
            HEADER + b"\n2023-11-16 18:17:03,-1,3", "Line 2: -1 and 3 tokens", id="length"
        ),
        pytest.param(TRACE + b"\n2023-11-16 18:00:00,1,1", "Line 5: Its time", id="order"),
        pytest.param(
            TRACE + b"\n2023-11-16 18:18:00," + b"9" * 5000 + b",1", "Line 5", id="digits"
        ),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(raw: bytes, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        read_azure(raw)
