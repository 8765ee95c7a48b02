"""SGLang's pages and answers. Built by hand from its documentation: not verified on a server."""

import msgspec
import pytest

from routing.core.kv_events import EventDecodeError, Stored
from routing.engines.base import Meeting, TokenUsage, batch_of, members_of
from routing.engines.sglang import ENGINE, Sglang

PAGE = b"""\
# HELP sglang:num_running_reqs The number of running requests.
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 7.0
sglang:num_queue_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 3.0
sglang:token_usage{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 0.25
sglang:cache_config_info{model_name="m",num_pages="1000",page_size="64"} 1.0
sglang:prompt_tokens_total{model_name="m"} 5000.0
sglang:generation_tokens_total{model_name="m"} 900.0
sglang:cached_tokens_total{cache_source="device",model_name="m"} 1000.0
sglang:cached_tokens_total{cache_source="host",model_name="m"} 500.0
"""


def test_a_page_is_read_not_verified_on_a_server() -> None:
    signals = ENGINE.signals(PAGE)

    assert (signals.running, signals.waiting, signals.kv_usage) == (7, 3, 0.25)
    assert (signals.block_size_tokens, signals.kv_capacity_tokens) == (64, 64_000)
    assert (signals.prefix_queries_total, signals.prefix_hits_total) == (5000, 1500)
    assert signals.process_start is None


@pytest.mark.lesson("S04")
def test_each_data_parallel_rank_counts_and_each_tensor_parallel_rank_once() -> None:
    lines = [
        b'sglang:num_running_reqs{dp_rank="%d",tp_rank="%d"} %d' % (rank, part, 5 + rank)
        for rank in range(2)
        for part in range(4)
    ]

    signals = ENGINE.signals(b"# page\n" + b"\n".join(lines))

    assert signals.running == 5 + 6


def test_requests_of_pairs_that_wait_for_memory_or_transfer_are_waiting() -> None:
    page = PAGE + b'sglang:num_decode_transfer_queue_reqs{tp_rank="0"} 4.0\n'

    assert ENGINE.signals(page).waiting == 7


@pytest.mark.parametrize("page", [b"", b"\x00\xff" * 50, b"sglang:num_running_reqs{} NaN\n"])
def test_what_is_no_page_is_unknown_everywhere(page: bytes) -> None:
    signals = ENGINE.signals(b"#\n" + page)

    assert signals.running is None
    assert signals.waiting is None
    assert signals.kv_usage is None


@pytest.mark.lesson("W19")
@pytest.mark.parametrize(
    ("report", "tokens"),
    [
        pytest.param(
            b'{"loads":[{"dp_rank":0,"num_waiting_uncached_tokens":100},'
            b'{"num_waiting_uncached_tokens":20}]}',
            120,
            id="over-all-ranks",
        ),
        pytest.param(
            b'{"loads":[{"num_waiting_uncached_tokens":100},{"dp_rank":1}]}', None, id="one-silent"
        ),
        pytest.param(b'{"loads":[]}', None, id="nobody"),
        pytest.param(b"<html>", None, id="not-json"),
    ],
)
def test_queued_tokens_are_those_that_the_engine_reports(report: bytes, tokens: int | None) -> None:
    assert Sglang().waiting_tokens(report) == tokens


@pytest.mark.lesson("X07")
@pytest.mark.parametrize(
    "token_ids",
    [
        pytest.param([[1, 2], [2, 3], [3, 4], [4, 5]], id="pairs"),
        pytest.param([1, 2, 2, 3, 3, 4, 4, 5], id="flat-at-double-length"),
        pytest.param([1, 2, 3, 4], id="no-pairs"),
    ],
)
def test_a_cache_of_token_pairs_publishes_the_prompt_not_verified_on_a_server(
    token_ids: list[object],
) -> None:
    payload = msgspec.msgpack.encode([1.0, [["BlockStored", [7, 8], None, token_ids, 2, None]], 0])

    batch = ENGINE.event_decoder().decode(payload)

    (event,) = batch.events
    assert isinstance(event, Stored)
    assert event.token_ids == [1, 2, 3, 4]


def test_lists_that_are_no_pairs_are_refused() -> None:
    payload = msgspec.msgpack.encode([1.0, [["BlockStored", [7], None, [[1, 2, 3], [2]], 2]], 0])

    with pytest.raises(EventDecodeError):
        ENGINE.event_decoder().decode(payload)


def test_usage_has_openais_form() -> None:
    answer = (
        b'{"usage":{"prompt_tokens":10,"completion_tokens":3,'
        b'"prompt_tokens_details":{"cached_tokens":8}}}'
    )

    assert ENGINE.usage(answer) == TokenUsage(
        prompt_tokens=10, completion_tokens=3, cached_tokens=8
    )


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b'{"prompt":"x"}', None),
        (b'{"prompt":[1,2]}', None),
        (b'{"prompt":["x","y"]}', 2),
        (b'{"prompt": [[1],[2],[3]]}', 3),
        (b'{"messages":[]}', None),
    ],
)
def test_each_prompt_of_a_batch_has_a_room_not_verified_on_a_server(
    body: bytes, count: int | None
) -> None:
    rooms = iter(range(10))
    meeting = Meeting(host="p", port=8998, draw_room=lambda: next(rooms))
    legs = ENGINE.at_once
    assert legs is not None

    members = members_of(legs.meeting_body(body, meeting))

    room = msgspec.json.decode(members["bootstrap_room"])
    assert room == (0 if count is None else list(range(count)))
    assert batch_of(body) == count
