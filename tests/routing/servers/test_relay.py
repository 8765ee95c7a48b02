"""What a relay does to the bytes of a stream, wherever they are cut."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from routing.engines.vllm import ENGINE
from routing.servers.relay import Relay, RelayTerms, with_cached_tokens
from tests.routing.servers.scripted import event

USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 2,
    "prompt_tokens_details": {"cached_tokens": 8},
}


class Sink:
    """Takes what a client would get."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.producer = None
        self.paused = False
        self.is_ended = False

    def open_stream(self, status: int, *, content_type: bytes, headers: bytes) -> None:
        assert status == 200

    def send(self, data: bytes) -> None:
        if data:
            self.parts.append(data)

    def close_stream(self) -> None:
        self.is_ended = True


def run(
    pieces: list[bytes], *, hide_usage: bool, cached_tokens: int | None = None
) -> tuple[Sink, Relay]:
    sink = Sink()
    terms = RelayTerms(
        answer_headers=b"",
        hide_usage=hide_usage,
        cached_tokens=lambda: cached_tokens,
        on_first=lambda: None,
        on_tokens=lambda count: None,
    )
    relay = Relay(sink, ENGINE, terms)  # type: ignore[arg-type]
    relay.on_head(200, {b"content-type": b"text/event-stream"}, None)  # type: ignore[arg-type]
    for piece in pieces:
        relay.on_data(piece)
    relay.finish()
    return sink, relay


texts = st.text(max_size=12) | st.sampled_from(['"usage":{', "data: ", "\n\n", '"choices":[]'])


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[bytes], bytes, list[bytes]]:
    """Content events, the usage event and the cuts of their bytes."""
    content = [event({"content": text}) for text in draw(st.lists(texts, min_size=1, max_size=6))]
    data = b"".join([*content, event(None, usage=USAGE), b"data: [DONE]\n\n"])
    cuts = sorted(draw(st.sets(st.integers(1, len(data) - 1), max_size=12)))
    bounds = [0, *cuts, len(data)]
    pieces = [data[start:end] for start, end in itertools.pairwise(bounds)]
    return content, data, pieces


@given(streams())
def test_however_it_is_cut_only_the_usage_event_is_left_out(
    drawn: tuple[list[bytes], bytes, list[bytes]],
) -> None:
    content, _, pieces = drawn

    sink, relay = run(pieces, hide_usage=True)

    assert b"".join(sink.parts) == b"".join([*content, b"data: [DONE]\n\n"])
    usage = relay.usage()
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (9, 2, 8)
    assert relay.events == len(content) + 2


@given(streams())
def test_a_client_that_asked_gets_every_byte(
    drawn: tuple[list[bytes], bytes, list[bytes]],
) -> None:
    _, data, pieces = drawn

    sink, _ = run(pieces, hide_usage=False)

    assert b"".join(sink.parts) == data
    assert sink.is_ended


def test_the_prefill_engines_count_replaces_the_decode_engines() -> None:
    sink, _ = run([event(None, usage=USAGE)], hide_usage=False, cached_tokens=3)

    assert sink.parts == [
        event(None, usage=USAGE | {"prompt_tokens_details": {"cached_tokens": 3}})
    ]


def test_usage_in_every_chunk_is_passed_on_and_the_last_one_counts() -> None:
    chunks = [
        event({"content": "a"}, usage={"prompt_tokens": 5, "completion_tokens": number})
        for number in (1, 2)
    ]

    sink, relay = run(chunks, hide_usage=True)

    assert b"".join(sink.parts) == b"".join(chunks)
    usage = relay.usage()
    assert usage is not None
    assert usage.completion_tokens == 2


def test_events_may_be_separated_by_carriage_returns() -> None:
    stream = b"data: {}\r\n\r\n" + event(None, usage=USAGE).replace(b"\n\n", b"\r\n\r\n")

    sink, relay = run([stream[:7], stream[7:]], hide_usage=True)

    assert b"".join(sink.parts) == b"data: {}\r\n\r\n"
    assert relay.usage() is not None


def test_an_event_without_end_is_passed_on_before_it_fills_the_memory() -> None:
    sink, _ = run([b"data: " + b"x" * 700_000, b"y" * 700_000], hide_usage=True)

    assert sum(len(part) for part in sink.parts) == 1_400_006


def test_text_that_looks_like_the_count_is_not_touched() -> None:
    answer = b'{"text":"\\"cached_tokens\\": 7","usage":{"d":{"cached_tokens": 8}}}'

    assert with_cached_tokens(answer, 2) == answer.replace(b" 8", b" 2")
