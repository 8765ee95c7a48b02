"""Lines are counted as an editor counts them, and bounded."""

import msgspec
import pytest

from routing.simulator.notes import Note
from routing.simulator.workloads.readers import reading
from routing.simulator.workloads.readers.reading import (
    Bounds,
    TraceError,
    check_order,
    decoded,
    lines_of,
)


def test_empty_lines_are_skipped_and_counted() -> None:
    assert list(lines_of(b"a\r\n\n  \nb")) == [(1, b"a"), (4, b"b")]


def test_a_long_line_and_a_large_trace_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_LINE_BYTES", 10)
    with pytest.raises(TraceError, match="Line 2: It has 11 bytes; at most 10 are read"):
        list(lines_of(b"a\n" + b"x" * 11))

    monkeypatch.setattr(reading, "MOST_BYTES", 10)
    with pytest.raises(TraceError, match="at most 10 are read"):
        list(lines_of(b"x" * 11))


@pytest.mark.parametrize("line", [b"not json", b"[" * 100_000, b'"text"', b"\xff"])
def test_what_is_no_object_of_json_is_refused_with_its_line(line: bytes) -> None:
    with pytest.raises(TraceError, match="Line 3: "):
        decoded(msgspec.json.Decoder(dict[str, int]), line, 3)


def test_time_does_not_go_back() -> None:
    check_order(2.0, 2.0, line=5, unit="s")
    with pytest.raises(TraceError, match="Line 5: Its time 1 s is before"):
        check_order(1.0, 2.0, line=5, unit="s")


def test_bounds_cut_and_end() -> None:
    bounds = Bounds(limit=2, longest_tokens=100)

    assert (bounds.cut(99), bounds.cut(101)) == (99, 100)
    assert (bounds.is_full(1), bounds.is_full(2)) == (False, True)
    assert bounds.notes(3) == (Note("cut-prompts", {"count": 3, "tokens": 100}),)
    assert bounds.notes(0) == ()


def test_more_requests_than_can_be_simulated_need_a_limit() -> None:
    with pytest.raises(TraceError, match="state a limit"):
        Bounds().is_full(reading.MOST_REQUESTS)
