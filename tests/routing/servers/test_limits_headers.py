"""Header lines about limits and place."""

import pytest

from routing.producers.tenants import Remaining
from routing.servers.limits_headers import _duration, _lines
from tests.routing.servers.scripted import Stage, chat, document


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.0, b"0s"),
        (0.25, b"0.25s"),
        (1.0, b"1s"),
        (12.3456, b"12.346s"),
        (60.0, b"1m0s"),
        (123.5, b"2m3.5s"),
        (59.9999, b"1m0s"),
    ],
)
def test_durations_are_written_as_openais_clients_know_them(
    seconds: float, expected: bytes
) -> None:
    assert _duration(seconds) == expected


def test_three_lines_per_kind_and_none_without_a_limit() -> None:
    left = Remaining(limit=10, remaining=4, reset_seconds=0.6)

    lines, nothing = _lines(b"requests", left), _lines(b"tokens", None)

    assert lines.split(b"\r\n") == [
        b"x-ratelimit-limit-requests: 10",
        b"x-ratelimit-remaining-requests: 4",
        b"x-ratelimit-reset-requests: 0.6s",
        b"",
    ]
    assert nothing == b""


async def test_without_limits_no_number_is_told_but_the_place_is(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()

    whole, streamed = await stage.ask(chat()), await stage.ask(chat(stream=True))

    for answer in (whole, streamed):
        assert answer.headers["x-consort-jurisdiction"] == "kr"
        assert not [name for name in answer.headers if name.startswith("x-ratelimit")]


@pytest.mark.parametrize(
    "place", [pytest.param("kr\r\nx-evil: 1", id="line-break"), pytest.param("서울", id="hangul")]
)
async def test_a_place_that_is_no_header_value_is_not_told(stage: Stage, place: str) -> None:
    engine = await stage.engine("a")
    loaded = document([engine])
    endpoints = tuple(
        type(spec)(
            **{name: getattr(spec, name) for name in spec.__struct_fields__}
            | {"jurisdiction": place}
        )
        for spec in loaded.endpoints
    )
    fields = {name: getattr(loaded, name) for name in loaded.__struct_fields__}
    await stage.push(type(loaded)(**fields | {"endpoints": endpoints}))

    answer = await stage.ask(chat())

    assert answer.status == 200
    assert "x-consort-jurisdiction" not in answer.headers
    assert "x-evil" not in answer.headers
