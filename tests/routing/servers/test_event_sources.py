"""Where events are: stated, told by engines, or not to be had."""

import json
from typing import Any

import pytest

from routing.core.specs.endpoints import EndpointSpec
from routing.servers.event_sources import (
    EventSource,
    NoEventsError,
    described,
    discovered_source,
    stated_source,
)
from tests.routing.pool.builders import endpoint_dict, make_document

# vLLM 0.32.0, recorded.
TOLD = {
    "enable_kv_cache_events": True,
    "publisher": "zmq",
    "endpoint": "tcp://*:15557",
    "replay_endpoint": "tcp://127.0.0.1:15558",
    "buffer_steps": 10000,
    "hwm": 100000,
    "max_queue_size": 100000,
    "topic": "kv@a@tiny",
}


def spec(**fields: Any) -> EndpointSpec:
    return make_document(endpoint_dict("a", **fields)).endpoints[0]


def found(sources: Any, **fields: Any) -> EventSource:
    return discovered_source(json.dumps(sources).encode(), spec(**fields), host="10.1.2.3")


def test_ports_that_an_engine_tells_are_at_the_engines_host() -> None:
    source = found({"0": TOLD})

    assert source == EventSource(
        address="tcp://10.1.2.3:15557", replay_address="tcp://10.1.2.3:15558", topic=""
    )


@pytest.mark.lesson("F10")
@pytest.mark.parametrize(
    "sources", [{"0": TOLD}, {"0": TOLD, "1": TOLD | {"endpoint": "tcp://*:15559"}}]
)
def test_each_data_parallel_rank_has_ports_of_its_own(sources: dict[str, Any]) -> None:
    source = found(sources, data_parallel_rank=1)

    assert source.address == f"tcp://10.1.2.3:{15559 if len(sources) > 1 else 15558}"


@pytest.mark.parametrize(
    ("sources", "why"),
    [
        pytest.param({}, "publishes no", id="none"),
        pytest.param({"0": TOLD | {"enable_kv_cache_events": False}}, "publishes no", id="off"),
        pytest.param({"0": TOLD | {"publisher": "kafka"}}, "kafka", id="other-publisher"),
        pytest.param(
            {"0": TOLD | {"endpoint": "tcp://10.0.0.9:5557"}}, "instead of binding", id="connects"
        ),
        pytest.param({"0": TOLD, "1": TOLD}, "several data-parallel ranks", id="ranks"),
        pytest.param({"0": TOLD | {"endpoint": "ipc:///x"}}, "no address", id="ipc"),
        pytest.param({"0": TOLD | {"endpoint": "tcp://*:99999"}}, "no address", id="port"),
        pytest.param([1, 2], "cannot be read", id="no-map"),
    ],
)
def test_what_cannot_be_followed_says_why(sources: Any, why: str) -> None:
    with pytest.raises(NoEventsError, match=why):
        found(sources)


def test_a_stated_wildcard_is_bound_by_this_router() -> None:
    stated = stated_source(spec(kv_events={"endpoint": "tcp://*:5557", "topic": "kv@a@"}))
    dialled = stated_source(spec(kv_events={"endpoint": "tcp://10.1.2.3:5557"}))

    assert stated is not None
    assert dialled is not None
    assert (stated.binds, dialled.binds) == (True, False)
    assert described(stated) == {
        "address": "tcp://*:5557",
        "replay_address": None,
        "topic": "kv@a@",
        "binds": True,
    }
    assert stated_source(spec()) is None
