"""Which endpoints a gateway, or a conformance test, lets choose among; and who served."""

from typing import Any

import pytest

from routing.servers.faces.ext_proc.stream import Face
from routing.servers.faces.picks import Picks
from tests.routing.servers.faces.ext_proc.gateway import (
    Gateway,
    destination,
    picked,
    request_headers,
    response_headers,
    set_headers,
)
from tests.routing.servers.scripted import Stage

KEY = "x-gateway-destination-endpoint-subset"
SERVED = "x-gateway-destination-endpoint-served"
ANSWERED = "x-conformance-test-served-endpoint"


def address(stage: Stage, name: str) -> str:
    return f"127.0.0.1:{stage.engines[name].port}"


def hinted(hint: Any) -> dict[str, Any]:
    return {"metadata": {"envoy.lb.subset_hint": {KEY: hint}}}


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize("as_list", [True, False])
async def test_only_the_gateways_subset_is_chosen_from(
    face: Face, stage: Stage, name: str, *, as_list: bool
) -> None:
    text = f"10.0.0.9:1,{address(stage, name)}"
    hint = text.split(",") if as_list else text

    for _ in range(5):
        assert destination(picked(face, **hinted(hint)).got[-2]) == address(stage, name)


async def test_a_host_means_every_port_of_it(face: Face, stage: Stage) -> None:
    listed = destination(picked(face, **hinted(["127.0.0.1"])).got[-2])

    assert set(listed.split(",")) == {address(stage, "a"), address(stage, "b")}


@pytest.mark.parametrize("hint", [[], "", ["10.0.0.9"], 7])
async def test_a_subset_without_an_endpoint_of_the_pool_is_503(face: Face, hint: Any) -> None:
    told = picked(face, **hinted(hint)).got[-1].immediate_response

    assert told.status.code == 503
    assert set_headers(told.headers)["x-llm-d-request-dropped-reason"] == "rejected-no-endpoints"


async def test_a_subset_holds_for_requests_without_a_body(face: Face, stage: Stage) -> None:
    head = request_headers(
        method="GET", path="/v1/models", is_last=True, **hinted([address(stage, "b")])
    )

    (answer,) = Gateway(face).tell(head)

    assert destination(answer) == address(stage, "b")


async def test_a_test_may_choose_and_outranks_the_hint(picks: Picks, stage: Stage) -> None:
    face = Face(picks, is_testing=True)
    told = {"test-epp-endpoint-selection": address(stage, "b")} | hinted([address(stage, "a")])

    gateway = picked(face, **told)

    assert destination(gateway.got[-2]) == address(stage, "b")


async def test_nobody_chooses_where_no_conformance_is_tested(face: Face, stage: Stage) -> None:
    told = {"test-epp-endpoint-selection": address(stage, "b")} | hinted([address(stage, "a")])

    gateway = picked(face, **told)
    chosen = destination(gateway.got[-2])
    (head,) = gateway.tell(response_headers())

    assert chosen == address(stage, "a")
    assert ANSWERED not in set_headers(head.response_headers.response.header_mutation)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"envoy.lb": {SERVED: "127.0.0.1:9"}}, "127.0.0.1:9"),
        ({"envoy.lb": {"x": "y"}}, "fail: missing destination endpoint served metadata"),
        ({}, "fail: missing envoy lb metadata"),
    ],
)
async def test_a_conformance_test_is_told_who_served(
    picks: Picks, metadata: dict[str, Any], expected: str
) -> None:
    gateway = picked(Face(picks, is_testing=True))

    (head,) = gateway.tell(response_headers(metadata=metadata))

    assert set_headers(head.response_headers.response.header_mutation)[ANSWERED] == expected
