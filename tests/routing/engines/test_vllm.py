"""vLLM's pages and bodies, against recordings of vLLM 0.32.0."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.core.signals import EngineSignals
from routing.engines.base import AnswerError, TokenUsage, append_member, join_members, members_of
from routing.engines.vllm import ENGINE

SAMPLES = Path(__file__).parent / "samples"


def sample(name: str) -> bytes:
    return (SAMPLES / f"vllm-0.32.0-{name}").read_bytes()


def test_a_loaded_engine_tells_its_load_and_its_cache() -> None:
    signals = ENGINE.signals(sample("metrics-under-load.txt"))

    assert signals.running == 16
    assert signals.waiting == 24
    assert signals.kv_usage == pytest.approx(0.00488, abs=1e-5)
    assert signals.kv_capacity_tokens == 2_097_152
    assert signals.block_size_tokens == 128
    assert signals.prompt_tokens_total == 94_598
    assert signals.process_start == pytest.approx(1.7959838e9, rel=1e-6)


def test_a_fresh_engine_counts_zero_and_not_unknown() -> None:
    signals = ENGINE.signals(sample("metrics-idle-fresh.txt"))

    assert signals.running == 0
    assert signals.waiting == 0
    assert signals.kv_usage == 0.0


def test_a_page_of_another_program_is_unknown_everywhere() -> None:
    assert ENGINE.signals(b"# TYPE up gauge\nup 1\n") == EngineSignals()


@pytest.mark.parametrize("value", [b"", b"NaN", b"+Inf", b"many"])
def test_a_value_that_is_no_number_is_unknown_and_the_rest_is_read(value: bytes) -> None:
    page = (
        b'\nvllm:num_requests_running{engine="0"} 3\n'
        b'vllm:num_requests_running{engine="1"} ' + value + b"\n"
        b'vllm:num_requests_waiting{engine="0"} 2 1700000000\n'
    )

    signals = ENGINE.signals(page)

    assert signals.running is None
    assert signals.waiting == 2


def test_ranks_of_one_server_are_summed_and_their_cache_use_weighted() -> None:
    page = (
        b"# TYPE x gauge\n"
        b'vllm:num_requests_running{engine="0",model_name="m"} 3.0\n'
        b'vllm:num_requests_running{engine="1",model_name="m"} 4.0\n'
        b'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5\n'
        b'vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.1\n'
        b'vllm:cache_config_info{block_size="16",engine="0",kv_cache_size_tokens="3000"} 1.0\n'
        b'vllm:cache_config_info{block_size="16",engine="1",kv_cache_size_tokens="1000"} 1.0\n'
        b'vllm:num_requests_waiting{engine="0",model_name="m"} 1.0\n'
        b'vllm:prompt_tokens_total{engine="0",model_name="m"} 10.0\n'
        b'vllm:prompt_tokens_created{engine="0",model_name="m"} 100.0\n'
        b'vllm:prompt_tokens_total{engine="1",model_name="m"} 5.0\n'
    )

    signals = ENGINE.signals(page)

    assert (signals.running, signals.waiting) == (7, 1)
    assert signals.kv_usage == pytest.approx(0.4)
    assert signals.kv_capacity_tokens == 4000
    assert signals.prompt_tokens_total == 15


def test_capacity_comes_from_blocks_when_the_size_is_absent() -> None:
    page = (
        b"#\n"
        b'vllm:cache_config_info{block_size="16",engine="0",kv_cache_size_tokens="None",'
        b'num_gpu_blocks="100"} 1.0\n'
    )

    assert ENGINE.signals(page).kv_capacity_tokens == 1600


def test_usage_of_a_whole_answer() -> None:
    answer = json.dumps(json.loads(sample("chat.json"))["response"]).encode()

    assert ENGINE.usage(answer) == TokenUsage(prompt_tokens=422, completion_tokens=8)


def test_only_the_last_event_of_a_stream_has_usage() -> None:
    lines = json.loads(sample("chat-stream.json"))["sse_lines"]

    usages = [ENGINE.usage(line.removeprefix("data: ").encode()) for line in lines if line]

    assert [usage for usage in usages if usage] == [
        TokenUsage(prompt_tokens=422, completion_tokens=8)
    ]


def test_cached_tokens_are_read_when_the_engine_tells_them() -> None:
    answer = (
        b'{"usage":{"prompt_tokens":9,"completion_tokens":1,'
        b'"prompt_tokens_details":{"cached_tokens":8}}}'
    )

    assert ENGINE.usage(answer) == TokenUsage(prompt_tokens=9, completion_tokens=1, cached_tokens=8)


def test_prefill_body_equals_the_recorded_leg() -> None:
    recorded = json.loads(sample("nixl-chat-stream.json"))
    decode = dict(recorded["decode"]["request"])
    decode.pop("kv_transfer_params")

    body = ENGINE.prefill_body(json.dumps(decode).encode())

    expected = {**recorded["prefill"]["request"], "stream": False}
    assert json.loads(body) == expected


def test_the_ticket_of_the_prefill_leg_is_handed_on_byte_for_byte() -> None:
    recorded = json.loads(sample("nixl-chat-stream.json"))
    # Odd spaces and order must survive, so the answer is not written by our own encoder.
    answer = json.dumps(recorded["prefill"]["response"], indent=3).encode()

    result = ENGINE.prefill_answer(answer)

    assert result.kv_transfer_params in answer
    assert (
        json.loads(result.kv_transfer_params) == recorded["decode"]["request"]["kv_transfer_params"]
    )
    assert result.usage == TokenUsage(prompt_tokens=412, completion_tokens=1, cached_tokens=384)


def test_decode_body_is_the_clients_body_plus_the_ticket() -> None:
    body = b'{ "model" : "m",  "stream": true , "unknown_field": [1, 2.50] }'

    decode = ENGINE.decode_body(body, b'{"a": [[1, 2]]}')

    assert decode == (
        b'{ "model" : "m",  "stream": true , "unknown_field": [1, 2.50],'
        b'"kv_transfer_params":{"a": [[1, 2]]}}'
    )


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b'{"id":"x"}', id="absent"),
        pytest.param(b'{"kv_transfer_params":null}', id="null"),
        pytest.param(b"<html>", id="no-json"),
    ],
)
def test_a_prefill_answer_without_a_ticket_is_an_error(answer: bytes) -> None:
    with pytest.raises(AnswerError):
        ENGINE.prefill_answer(answer)


def test_prefill_body_limits_every_spelling_of_the_output_length() -> None:
    body = b'{"max_tokens":9,"max_completion_tokens":9,"min_tokens":4,"stream_options":{}}'

    assert json.loads(ENGINE.prefill_body(body)) == {
        "max_tokens": 1,
        "max_completion_tokens": 1,
        "min_tokens": 1,
        "stream": False,
        "kv_transfer_params": {
            "do_remote_decode": True,
            "do_remote_prefill": False,
            "remote_engine_id": None,
            "remote_block_ids": None,
            "remote_host": None,
            "remote_port": None,
        },
    }


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            b'{"stream": true }',
            b'{"stream": true,"stream_options":{"include_usage":true}}',
            id="none-asked",
        ),
        pytest.param(
            b'{"stream_options":{"include_usage":false,"continuous_usage_stats":true}}',
            b'{"stream_options":{"include_usage":true,"continuous_usage_stats":true}}',
            id="own-options-stay",
        ),
        pytest.param(
            b'{"stream_options":null}',
            b'{"stream_options":{"include_usage":true}}',
            id="null-options",
        ),
    ],
)
def test_a_streaming_body_asks_for_usage(body: bytes, expected: bytes) -> None:
    assert ENGINE.metered_body(body) == expected


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), json_values, max_size=6))
def test_members_split_and_joined_mean_the_same(value: dict[str, object]) -> None:
    body = json.dumps(value).encode()

    assert json.loads(join_members(members_of(body))) == value


@given(st.dictionaries(st.text(), json_values, max_size=6), json_values)
def test_an_appended_member_changes_no_other(value: dict[str, object], added: object) -> None:
    value.pop("added", None)
    body = json.dumps(value, indent=1).encode() + b" \n"

    longer = append_member(body, "added", msgspec.json.encode(added))

    assert longer.startswith(body.rstrip()[:-1].rstrip())
    assert json.loads(longer) == {**value, "added": added}


def test_the_prefill_leg_of_responses_limits_their_own_output() -> None:
    body = b'{"model":"m","input":"x","max_output_tokens":9,"stream":true}'

    leg = json.loads(ENGINE.in_turn.prefill_body(body))

    assert (leg["max_output_tokens"], leg["stream"]) == (1, False)
    assert "max_tokens" not in leg


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"usage": {"input_tokens": 13, "output_tokens": 4}}, (13, 4, None)),
        (
            {"usage": {"input_tokens": 3, "cache_read_input_tokens": 10, "output_tokens": 4}},
            (13, 4, 10),
        ),
        (
            {
                "usage": {
                    "input_tokens": 17,
                    "input_tokens_details": {"cached_tokens": 8},
                    "output_tokens": 4,
                }
            },
            (17, 4, 8),
        ),
        (
            {"type": "response.completed", "response": {"usage": {"input_tokens": 1}}},
            (1, None, None),
        ),
        ({"message": {"usage": {"input_tokens": 5, "output_tokens": 0}}}, (5, None, None)),
        ({"usage": {"prompt_tokens": 5, "total_tokens": 5}}, (5, None, None)),
        ({"usage": {"prompt_tokens": -5, "completion_tokens": 2**60}}, (None, None, None)),
    ],
)
def test_usage_is_read_in_the_words_of_every_api(
    answer: dict[str, Any], expected: tuple[int | None, ...]
) -> None:
    usage = ENGINE.usage(json.dumps(answer).encode())

    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == expected


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"\xff", b'{"usage":5}', b"[" * 5000, b'{"usage":null}']
)
def test_an_answer_without_usage_says_nothing(raw: bytes) -> None:
    assert ENGINE.usage(raw) is None
