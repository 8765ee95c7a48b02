"""What is read of an answer that passes."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.engines.vllm import ENGINE
from routing.servers.attempt import Ending
from routing.servers.faces.ext_proc import watching
from routing.servers.faces.ext_proc.watching import AnswerWatch
from routing.servers.upstream import FailureKind
from tests.routing.servers.scripted import USAGE, answer_body, event

SSE = b"text/event-stream; charset=utf-8"


@dataclass
class Notes:
    """A pick that writes down what it is told."""

    firsts: int = 0
    count: int = 0
    failures: list[str] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)
    holds: int = 0

    def served(self, address: str) -> None:
        raise AssertionError(address)

    def first_token(self) -> None:
        self.firsts += 1

    def tokens(self, count: int) -> None:
        assert count > 0
        self.count += count

    def failed(self, kind: FailureKind) -> None:
        self.failures.append(kind)

    def finish(self, ending: Ending) -> None:
        self.endings.append(ending)

    def hold(self) -> None:
        self.holds += 1


def watch(status: int | None = 200, content_type: bytes = SSE) -> tuple[AnswerWatch, Notes]:
    notes = Notes()
    return AnswerWatch(notes, ENGINE.usage, status=status, content_type=content_type), notes


WORDS = [event({"role": "assistant", "content": ""}), *(event({"content": "a"}) for _ in range(20))]
LAST = [event(None, usage=USAGE), b"data: [DONE]\n\n"]


@pytest.mark.parametrize("separator", [b"\n\n", b"\r\n\r\n"])
@given(size=st.integers(1, 400))
def test_a_stream_says_the_same_however_it_is_cut(separator: bytes, size: int) -> None:
    whole = b"".join(WORDS + LAST).replace(b"\n\n", separator)
    one, notes = watch()

    for at in range(0, len(whole), size):
        one.take(whole[at : at + size], is_timely=True)
    one.ended()

    (ending,) = notes.endings
    assert (notes.firsts, notes.count) == (1, len(WORDS) + len(LAST))
    assert (ending.outcome, ending.status) == ("ok", 200)
    assert ending.usage is not None
    assert (ending.usage.prompt_tokens, ending.usage.completion_tokens) == (12, 3)


def test_a_buffered_stream_has_no_time_of_its_first_token() -> None:
    one, notes = watch()

    one.take(b"".join(WORDS), is_timely=False)
    one.ended()

    assert (notes.firsts, notes.count) == (0, len(WORDS))


@pytest.mark.parametrize("cut", [7, 10_000])
def test_a_whole_answer_tells_its_usage_at_the_end(cut: int) -> None:
    one, notes = watch(content_type=b"application/json")
    body = answer_body("a")

    one.take(body[:cut], is_timely=True)
    one.take(body[cut:], is_timely=True)
    one.ended()

    assert notes.endings[0].usage == ENGINE.usage(body)
    assert (notes.firsts, notes.count) == (0, 0)


def test_of_a_very_long_answer_the_usage_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "WHOLE_ANSWER_BYTES", 100)
    one, notes = watch(content_type=b"application/json")

    one.take(answer_body("a"), is_timely=True)
    one.ended()

    assert notes.endings[0].usage is None


def test_an_engine_that_fails_in_its_stream_is_an_error() -> None:
    one, notes = watch()

    one.take(WORDS[0] + b'data: {"error": {"message": "x"}}\n\n', is_timely=True)
    one.ended()

    assert (notes.endings[0].outcome, notes.endings[0].status) == ("error", 200)


@pytest.mark.parametrize(("status", "failures"), [(404, []), (429, []), (500, ["status"])])
def test_an_error_status_is_an_error_and_only_5xx_is_the_endpoints(
    status: int, failures: list[str]
) -> None:
    one, notes = watch(status, b"application/json")

    one.take(b'{"error":{}}', is_timely=True)
    one.ended()

    assert (notes.endings[0].outcome, notes.endings[0].status) == ("error", status)
    assert notes.failures == failures


def test_a_broken_stream_is_aborted_with_what_came() -> None:
    one, notes = watch()

    one.take(b"".join(WORDS[:3]), is_timely=True)
    one.broke()

    assert (notes.endings[0].outcome, notes.endings[0].status) == ("aborted", 499)
    assert (notes.count, notes.failures) == (3, [])


@pytest.mark.parametrize(("status", "holds"), [(200, 1), (None, 1), (429, 0), (502, 0)])
def test_of_a_body_that_passes_elsewhere_only_errors_are_known_to_have_ended(
    status: int | None, holds: int
) -> None:
    one, notes = watch(status)

    one.leave(is_over=False)

    assert notes.holds == holds
    assert len(notes.endings) == 1 - holds


def test_a_body_that_passed_elsewhere_and_is_over_is_not_held() -> None:
    one, notes = watch()

    one.leave(is_over=True)

    (ending,) = notes.endings
    assert (notes.holds, ending.is_seen, ending.usage) == (0, False, None)


def test_an_event_without_end_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "PARTIAL_EVENT_BYTES", 100)
    one, notes = watch()

    for _ in range(10):
        one.take(b"x" * 60, is_timely=True)
    one.take(b"\n\n" + LAST[0], is_timely=True)
    one.ended()

    assert notes.endings[0].usage is not None
