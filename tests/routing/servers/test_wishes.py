"""What a caller may ask for by header, and how a wrong wish is refused."""

from typing import Any

import pytest

from routing.core.document import KeySpec
from routing.servers import wishes
from routing.servers.errors import ApiError


def key(*, tenant: str = "t", **more: Any) -> KeySpec:
    return KeySpec(id="k", sha256="0" * 64, tenant=tenant, project="p", **more)


def read(
    headers: dict[str, str], *, user: str | None = None, pool: str = "p", **of_key: Any
) -> dict[str, Any]:
    raw = {name.encode(): value.encode() for name, value in headers.items()}
    return wishes.of(raw, key(**of_key), pool=pool, user=user)


def test_who_asks_for_nothing_gets_the_defaults() -> None:
    assert read({}) == {}
    assert read({"x-llm-d-inference-ttl": "1s"}) == {
        "session": None,
        "fairness": None,
        "queue_seconds": 1.0,
    }


@pytest.mark.parametrize(
    ("headers", "field", "expected"),
    [
        ({"x-consort-priority": "-5"}, "priority", -5),
        ({"x-llm-d-slo-ttft-ms": "250"}, "slo_ttft_seconds", 0.25),
        ({"x-slo-ttft-ms": "250.5"}, "slo_ttft_seconds", 0.2505),
        ({"x-slo-ttft-ms": "1", "x-llm-d-slo-ttft-ms": "2000"}, "slo_ttft_seconds", 2.0),
        ({"x-slo-tpot-ms": "20"}, "slo_tpot_seconds", 0.02),
        ({"x-llm-d-slo-tpot-ms": "30"}, "slo_tpot_seconds", 0.03),
        ({"x-llm-d-inference-ttl": "1.5"}, "queue_seconds", 1.5),
        ({"x-llm-d-inference-ttl": "500ms"}, "queue_seconds", 0.5),
        ({"x-llm-d-inference-ttl": "2m"}, "queue_seconds", 120.0),
        ({"x-llm-d-inference-ttl": "0"}, "queue_seconds", 0.0),
    ],
)
def test_each_wish_is_read_in_both_spellings(
    headers: dict[str, str], field: str, expected: object
) -> None:
    assert read(headers)[field] == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-consort-priority", "high"),
        ("x-consort-priority", "9999999999"),
        ("x-consort-priority", "9" * 5000),
        ("x-llm-d-slo-ttft-ms", "nan"),
        ("x-llm-d-slo-ttft-ms", "-1"),
        ("x-slo-tpot-ms", "inf"),
        ("x-slo-tpot-ms", ""),
        ("x-llm-d-inference-ttl", "1 fortnight"),
        ("x-llm-d-inference-ttl", "-3"),
    ],
)
def test_a_wish_that_cannot_be_read_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(ApiError) as caught:
        read({name: value})

    assert (caught.value.status, caught.value.param) == (400, name)


def test_the_first_session_header_wins_and_the_user_comes_last() -> None:
    def session(headers: dict[str, str], user: str | None = None) -> object:
        return read(headers, user=user)["session"]

    assert session({"x-session-id": "a", "session_id": "b"}) == session({"x-session-id": "a"})
    assert session({"session_id": "b"}, "u") == session({}, "b")
    assert session({"x-user-id": "a"}) != session({"x-user-id": "b"})


def test_equal_sessions_of_two_tenants_never_meet_and_say_nothing() -> None:
    ours = read({"x-session-id": "ana@example"}, tenant="t1")["session"]
    theirs = read({"x-session-id": "ana@example"}, tenant="t2")["session"]
    elsewhere = read({"x-session-id": "ana@example"}, tenant="t1", pool="q")["session"]

    assert len({ours, theirs, elsewhere}) == 3
    assert "ana" not in ours


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(("t", "1:tx", "s"), ("t", "1:t", "xs"), id="tenant-and-session"),
        pytest.param(("p1:t", "t", "s"), ("p", "1:tt", "s"), id="pool-and-tenant"),
        pytest.param(("p", "t", "1:ts"), ("p1:t", "t", "s"), id="pool-in-session"),
    ],
)
def test_no_session_is_built_that_reads_as_another_tenants(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    found = {
        read({"x-session-id": session}, pool=pool, tenant=tenant)["session"]
        for pool, tenant, session in (one, other)
    }

    assert len(found) == 2


def test_an_empty_user_is_no_session() -> None:
    assert read({}, user="")["session"] is None


def test_the_fairness_id_is_the_header_else_the_session() -> None:
    assert read({"x-session-id": "s"})["fairness"] == read({"x-session-id": "s"})["session"]
    explicit = read({"x-session-id": "s", "x-gateway-inference-fairness-id": "f"})
    assert explicit["fairness"] == read({"x-llm-d-inference-fairness-id": "f"})["fairness"]
    assert explicit["fairness"] != explicit["session"]


@pytest.mark.parametrize(
    ("name", "field"),
    [("x-consort-endpoints", "forced"), ("x-consort-avoid-endpoints", "avoided")],
)
def test_endpoints_are_named_by_keys_that_may_test_only(name: str, field: str) -> None:
    assert read({name: "e1, e2,"}, may_test=True)[field] == ("e1", "e2")
    for value, may_test, status in (("e1", False, 403), (" , ", True, 400)):
        with pytest.raises(ApiError) as caught:
            read({name: value}, may_test=may_test)
        assert caught.value.status == status


@pytest.mark.parametrize(
    ("highest", "asked", "is_allowed"),
    [(0, "0", True), (0, "-7", True), (0, "1", False), (5, "5", True), (5, "6", False)],
)
def test_a_caller_is_not_lifted_above_what_its_key_may_ask_for(
    highest: int, asked: str, *, is_allowed: bool
) -> None:
    headers = {"x-consort-priority": asked}

    if is_allowed:
        assert read(headers, highest_priority=highest)["priority"] == int(asked)
        return
    with pytest.raises(ApiError, match="above") as caught:
        read(headers, highest_priority=highest)

    assert (caught.value.status, caught.value.param) == (403, "x-consort-priority")


def objective(headers: dict[str, str], **of_key: Any) -> dict[str, Any]:
    raw = {name.encode(): value.encode() for name, value in headers.items()}
    objectives = {"interactive": 10, "batch": -5}
    return wishes.of(raw, key(**of_key), pool="p", user=None, objectives=objectives)


@pytest.mark.parametrize(
    ("name", "highest", "expected"),
    [("interactive", 100, 10), ("interactive", 3, 3), ("interactive", 0, 0), ("batch", 0, -5)],
)
def test_an_objective_gives_its_priority_up_to_the_highest_of_the_key(
    name: str, highest: int, expected: int
) -> None:
    found = objective({"x-gateway-inference-objective": name}, highest_priority=highest)

    assert (found["objective"], found["priority"]) == (name, expected)


def test_an_objective_that_nobody_stated_is_priority_zero() -> None:
    assert "priority" not in objective({"x-llm-d-inference-objective": "other"})


def test_the_newer_spelling_and_a_number_win() -> None:
    old, new = "x-gateway-inference-objective", "x-llm-d-inference-objective"

    assert objective({old: "interactive", new: "batch"})["priority"] == -5
    assert objective({new: "interactive", "x-consort-priority": "-1"})["priority"] == -1


@pytest.mark.parametrize(
    ("value", "is_wanted"),
    [
        ("if-available", True),
        ("If-Available; x=1", True),
        ("respond-async, if-available", True),
        ("if-available=yes", True),
        ("return=minimal", False),
        ("x=if-available", False),
        ("", False),
    ],
)
def test_a_preference_is_read_by_its_name(value: str, is_wanted: bool) -> None:
    assert read({"prefer": value}).get("if_available", False) == is_wanted
