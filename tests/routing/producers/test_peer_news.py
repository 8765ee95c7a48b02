"""News for peers are bounded in number and in bytes per second."""

import pytest

from routing.core.peer_messages import unpack_keys
from routing.core.table import Instance
from routing.producers.peer_news import (
    BYTES_PER_SECOND,
    KEYS_PER_PART,
    MAX_WAITING,
    MOST_KEYS,
    PeerNews,
)
from tests.routing.pool.builders import endpoint_dict, make_document

INSTANCE = Instance(make_document(endpoint_dict("a")).endpoints[0], 0, 0)


def wanted() -> PeerNews:
    news = PeerNews()
    news.is_wanted = True
    return news


def test_nothing_is_kept_while_nobody_wants_it() -> None:
    news = PeerNews()

    news.begun(INSTANCE, lease=1, keys=[1])
    news.withdrawn(INSTANCE, lease=1, keys=[1])
    news.breaker(INSTANCE, "connect", seconds=1.0)

    assert news.take_prompts(now=0.0) == []
    assert news.take_breakers() == ()


def test_news_are_taken_once() -> None:
    news = wanted()
    news.begun(INSTANCE, lease=1, keys=[1, 2])
    news.withdrawn(INSTANCE, lease=1, keys=[1, 2])
    news.breaker(INSTANCE, "connect", seconds=None)

    begun, withdrawn = news.take_prompts(now=0.0)

    assert (begun.is_withdrawn, withdrawn.is_withdrawn) == (False, True)
    assert unpack_keys(begun.keys) == [1, 2]
    assert news.take_prompts(now=0.0) == []
    assert [one.seconds for one in news.take_breakers()] == [None]
    assert news.take_breakers() == ()


def test_of_a_long_prompt_the_beginning_is_told_in_parts() -> None:
    news = wanted()

    news.begun(INSTANCE, lease=1, keys=list(range(2 * MOST_KEYS)))

    parts = news.take_prompts(now=0.0)
    assert {len(part.keys) for part in parts} == {8 * KEYS_PER_PART}
    assert [key for part in parts for key in unpack_keys(part.keys)] == list(range(MOST_KEYS))


@pytest.mark.lesson("N01")
def test_what_waits_is_bounded_and_what_was_dropped_counted() -> None:
    news = wanted()

    for number in range(MAX_WAITING + 5):
        news.begun(INSTANCE, lease=number, keys=[number])
        news.breaker(INSTANCE, "connect", seconds=1.0)

    assert news.dropped == 5
    assert len(news.take_breakers()) == MAX_WAITING
    assert news.take_prompts(now=0.0)[0].lease == 5


def test_bytes_per_second_are_bounded_and_the_rest_waits() -> None:
    news = wanted()
    per_prompt = 8 * MOST_KEYS
    count = int(2 * BYTES_PER_SECOND / per_prompt)
    for number in range(count):
        news.begun(INSTANCE, lease=number, keys=list(range(MOST_KEYS)))

    first = sum(len(part.keys) for part in news.take_prompts(now=100.0))
    at_once = sum(len(part.keys) for part in news.take_prompts(now=100.0))
    later = sum(len(part.keys) for part in news.take_prompts(now=100.5))

    assert BYTES_PER_SECOND <= first <= BYTES_PER_SECOND + 8 * KEYS_PER_PART
    assert at_once == 0
    assert 0.49 * BYTES_PER_SECOND <= later <= 0.51 * BYTES_PER_SECOND
