"""KV events: the captured structure; they rebuild the engine's cache."""

import itertools
from typing import Any

import pytest

from routing.testbed.events import EventLog
from routing.testbed.scheduler import run_until_idle
from tests.routing.testbed.helpers import make_model, make_sequence, sample


def stored(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Only the BlockStored events."""
    return [event for event in events if event["type"] == "BlockStored"]


@pytest.mark.parametrize("index", range(8))
def test_captured_events_have_only_fields_that_ours_have(index: int) -> None:
    log = EventLog()
    model = make_model(blocks=12, log=log)
    for start in (0, 5000, 9000):
        model.add(make_sequence(100, start=start, salt="ana"))
        run_until_idle(model, 0.0)
    events = log.take()
    model.reset_cache()
    events += log.take()
    ours = {event["type"]: set(event) for event in events}

    captured = sample("kv-events")[index]["decoded"]

    for event in captured[1]:
        assert set(event) == ours[event["type"]]


def test_a_chain_is_told_with_its_parent_and_its_tokens() -> None:
    log = EventLog()
    model = make_model(log=log, batched_tokens=64)
    sequence = make_sequence(100, output=16)
    model.add(sequence)

    run_until_idle(model, 0.0)

    events = stored(log.take())
    assert [len(event["block_hashes"]) for event in events] == [4, 2, 1]
    assert [event["parent_block_hash"] for event in events] == [
        None,
        events[0]["block_hashes"][-1],
        events[1]["block_hashes"][-1],
    ]
    told = itertools.chain.from_iterable(event["token_ids"] for event in events)
    assert list(told) == sequence.tokens[:112].tolist()


def test_a_hit_tells_nothing_and_a_salt_stands_on_the_first_block_only() -> None:
    log = EventLog()
    model = make_model(log=log)
    model.add(make_sequence(64, output=1, salt="ana"))
    run_until_idle(model, 0.0)
    first = log.take()
    model.add(make_sequence(64, output=1, salt="ana"))

    run_until_idle(model, 0.0)

    assert first[0]["extra_keys"] == [["ana"], None, None, None]
    assert log.take() == []


def test_events_rebuild_exactly_what_the_engine_holds() -> None:
    log = EventLog()
    model = make_model(blocks=40, log=log)
    for start in (0, 1000, 2000, 0, 3000, 1000):
        model.add(make_sequence(200, start=start, output=30))
        run_until_idle(model, 0.0)

    known: set[int] = set()
    for event in log.take():
        if event["type"] == "BlockStored":
            known |= set(event["block_hashes"])
        else:
            known -= set(event["block_hashes"])

    assert len(known) == model.pool.cached
    assert all(model.pool.match([key], 1) for key in known)


def test_an_adapter_is_told_as_in_the_capture() -> None:
    log = EventLog()
    model = make_model(log=log)
    for start, name in enumerate(("lora1", "lora2", "lora1")):
        sequence = make_sequence(48, output=1, start=1000 * start)
        sequence.adapter = name
        model.add(sequence)
        run_until_idle(model, 0.0)

    events = stored(log.take())

    assert [(event["lora_id"], event["lora_name"]) for event in events] == [
        (1, "lora1"),
        (2, "lora2"),
        (1, "lora1"),
    ]
    assert events[0]["extra_keys"] == [["lora1"]] * 3
