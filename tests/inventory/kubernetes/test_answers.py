"""Answers of API servers: refusals become errors with their reason, odd shapes are refused."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.kubernetes import answers, errors

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "metadata", "items", "name", "labels", "status", "code"])
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def status(reason: str, message: str = "said", **details: Any) -> dict[str, Any]:
    return {"kind": "Status", "reason": reason, "message": message, "details": details}


@pytest.mark.parametrize(
    ("code", "body", "expected"),
    [
        pytest.param(404, status("NotFound"), errors.NotFoundError, id="missing"),
        pytest.param(404, "404 page not found", errors.NotFoundError, id="missing-as-text"),
        pytest.param(409, status("Conflict"), errors.StaleError, id="stale"),
        pytest.param(409, status("AlreadyExists"), errors.ClusterRefusedError, id="exists"),
        pytest.param(403, status("Forbidden"), errors.ClusterRefusedError, id="forbidden"),
        pytest.param(422, status("Invalid"), errors.ClusterRefusedError, id="invalid"),
        pytest.param(410, status("Expired"), errors.ExpiredError, id="expired"),
        pytest.param(429, None, errors.ClusterUnavailableError, id="too-many"),
        pytest.param(500, status("InternalError"), errors.ClusterUnavailableError, id="broken"),
        pytest.param(504, status("Timeout"), errors.ClusterUnavailableError, id="write-timed-out"),
        pytest.param(302, None, errors.AnswerError, id="redirection"),
    ],
)
def test_each_refusal_has_its_error(
    code: int, body: Any, expected: type[errors.ClusterError]
) -> None:
    assert type(answers.refusal(code, {}, body)) is expected


def test_a_timed_out_list_says_to_list_again() -> None:
    found = answers.refusal(504, {}, status("Timeout"), in_list=True)

    assert isinstance(found, errors.ExpiredError)


def test_a_conflict_names_who_holds_which_fields() -> None:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "kubectl" using apps/v1',
            "field": ".spec.replicas",
        },
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "hpa" using apps/v1',
            "field": ".spec.paused",
        },
    ]

    found = answers.refusal(409, {}, status("Conflict", causes=causes))

    assert isinstance(found, errors.FieldConflictError)
    assert found.manager == "kubectl, hpa"
    assert found.fields == [".spec.replicas", ".spec.paused"]


def test_the_server_says_in_how_many_seconds_to_ask_again() -> None:
    by_header = answers.refusal(429, {"retry-after": "7"}, None)
    by_body = answers.refusal(503, {}, status("Busy", retryAfterSeconds=3))
    odd = answers.refusal(429, {"retry-after": "Wed, 21 Oct"}, None)
    long = answers.refusal(429, {"retry-after": "1e9"}, None)

    waits = [getattr(found, "retry_after", "-") for found in (by_header, by_body, odd, long)]
    assert waits == [7, 3, None, answers.MOST_RETRY_SECONDS]


@given(st.integers(300, 599), ANYTHING)
def test_a_refusal_of_any_shape_is_an_error_with_a_sentence(code: int, body: Any) -> None:
    found = answers.refusal(code, {"retry-after": "soon"}, body)

    assert isinstance(found, errors.ClusterError)
    assert 0 < len(str(found)) <= errors.MOST_MESSAGE


@given(ANYTHING)
def test_an_answer_of_any_shape_is_checked_or_refused(value: Any) -> None:
    for check in (
        lambda: answers.checked_object(value, kind="Pod"),
        lambda: answers.checked_page(value, api_version="v1", kind="Pod"),
        lambda: answers.checked_review(value),
        lambda: answers.checked_version(value),
    ):
        with suppress(errors.AnswerError):
            check()


@given(st.binary(max_size=60))
def test_bytes_that_are_no_event_are_refused(line: bytes) -> None:
    with pytest.raises(errors.AnswerError):
        answers.checked_event(line, kind="Pod")


@given(ANYTHING, st.sampled_from(["ADDED", "BOOKMARK", "ERROR"]) | ANYTHING)
def test_an_event_of_any_shape_is_checked_or_refused(value: Any, kind: Any) -> None:
    line = json.dumps({"type": kind, "object": value}).encode()

    with suppress(errors.ClusterError):
        assert answers.checked_event(line, kind="Pod").object


def test_items_of_a_list_get_the_kind_that_lists_leave_out() -> None:
    page = answers.checked_page(
        {"metadata": {"resourceVersion": "5"}, "items": [{"metadata": {"name": "a"}}]},
        api_version="v1",
        kind="Pod",
    )

    assert page.items[0]["kind"] == "Pod"
    assert page.items[0]["apiVersion"] == "v1"
    assert (page.resource_version, page.next) == ("5", "")


@pytest.mark.parametrize(
    "item",
    [
        pytest.param({}, id="no-metadata"),
        pytest.param({"metadata": {"name": 5}}, id="name-is-a-number"),
        pytest.param({"metadata": {"name": "a", "labels": {"a": 1}}}, id="label-is-a-number"),
        pytest.param({"metadata": {"name": "a", "uid": {}}}, id="uid-is-an-object"),
        pytest.param("pod", id="text"),
    ],
)
def test_one_lying_item_makes_the_list_unusable(item: Any) -> None:
    value = {"metadata": {"resourceVersion": "5"}, "items": [item]}

    with pytest.raises(errors.AnswerError, match=r"Item 0|labels|uid"):
        answers.checked_page(value, api_version="v1", kind="Pod")


def test_an_object_of_another_name_is_not_taken() -> None:
    other = {"kind": "Pod", "metadata": {"name": "b"}}

    with pytest.raises(errors.AnswerError, match="about Pod 'b'"):
        answers.checked_object(other, kind="Pod", name="a")


def test_a_watch_that_cannot_go_on_says_to_list_again() -> None:
    line = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}'

    with pytest.raises(errors.ExpiredError):
        answers.checked_event(line, kind="Pod")


def test_an_event_knows_where_the_watch_stands() -> None:
    line = b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12"}}}'

    assert answers.checked_event(line, kind="Pod").resource_version == "12"
