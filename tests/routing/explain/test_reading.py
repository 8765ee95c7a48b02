"""Records that nobody wrote: they are read as far as they go, and never fail."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.core.record import record_of
from routing.explain.explanation import Language, explain
from routing.explain.reading import MOST_CANDIDATES, TEXT_CHARACTERS, readable
from tests.routing.explain.records import candidate, record, shadow
from tests.routing.pool.builders import endpoint_dict, make_request, make_router

WHOLE = record(
    candidate("a", hit=100, other_way=("p", 0.4)),
    candidate("b", wait=1.0),
    removed={"state": 1},
    rejected=[{"endpoint": "c", "rule": "state"}],
    fallbacks=["b"],
    shadows=[shadow("random", "b", 0.3)],
    degraded=["no-kv-events"],
    outcome={"outcome": "ok", "status": 200, "ttft_seconds": 0.1, "cached_tokens": 5},
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["a", "b", "", "consort", "{destination}"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            found += _places(one, (*path, key))
    return found


def _with(value: Any, path: tuple[Any, ...], changed: Any) -> Any:
    copy = json.loads(json.dumps(value))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = changed
    return copy


@settings(max_examples=400, deadline=None)
@given(
    place=st.sampled_from(_places(WHOLE)),
    changed=JSON,
    language=st.sampled_from(["en", "ko"]),
)
def test_a_record_with_one_part_wrong_is_explained_without_it(
    place: tuple[Any, ...], changed: Any, language: Language
) -> None:
    told = explain(_with(WHOLE, place, changed), language=language)

    assert told.sentence
    assert all(told.points)


@settings(max_examples=200, deadline=None)
@given(
    parts=st.dictionaries(st.sampled_from(sorted(WHOLE)), JSON),
    other=JSON,
)
def test_anything_gets_a_sentence(parts: dict[str, Any], other: Any) -> None:
    assert explain(WHOLE | parts).sentence
    assert explain(other).sentence


def test_what_a_router_writes_is_read_whole() -> None:
    router = make_router(endpoint_dict("a"), endpoint_dict("b"))
    plain = json.loads(json.dumps(record_of(router.decide(make_request(), now=1.0))))

    found = readable(plain)

    for name in ("policy", "pool", "destination", "runner_up", "candidate_count", "removed"):
        assert found[name] == plain[name], name
    ours, theirs = found["candidates"], plain["candidates"]
    assert [row["terms"] for row in ours] == [
        {name: value for name, value in row["terms"].items() if value is not None} for row in theirs
    ]


def test_a_huge_record_is_cut() -> None:
    rows = [{"endpoint": f"e{number}", "terms": {"total": 1.0}} for number in range(100_000)]
    huge = {
        "destination": "x" * 10_000_000,
        "candidates": rows,
        "fallbacks": ["y" * 100_000] * 100_000,
        "removed": {f"rule-{number}": 1 for number in range(100_000)},
        "margin_seconds": 10**400,
    }

    found = readable(huge)
    told = explain(huge)

    assert len(found["candidates"]) == MOST_CANDIDATES
    assert len(found["destination"]) == TEXT_CHARACTERS
    assert "margin_seconds" not in found
    assert sum(map(len, [told.sentence, *told.points])) < 200_000


@pytest.mark.parametrize("sign", ["\x1b[2J", "\n", "\r", "\x00", "\u202e"])
def test_what_a_terminal_takes_for_a_command_is_no_part_of_a_sentence(sign: str) -> None:
    told = explain(record(candidate(f"a{sign}b"), candidate("c")))

    assert sign not in "".join((told.sentence, *told.points))
