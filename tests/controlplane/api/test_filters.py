"""What is not known is refused."""

import pytest

from controlplane.api.errors import UnknownParameterError
from controlplane.api.filters import filter_names, refuse_unknown
from controlplane.tenancy.api import TenantViewSet
from tests.factories import make_admin, make_api_client


@pytest.mark.parametrize(
    ("given", "suggestion"), [("sate", " Did you mean 'state'?"), ("zzz", ""), ("", "")]
)
def test_an_unknown_name_is_refused_with_what_is_close(given: str, suggestion: str) -> None:
    with pytest.raises(UnknownParameterError) as refused:
        refuse_unknown(["state", given], allowed=["state", "organisation"])

    assert str(refused.value) == f"This resource has no parameter '{given}'.{suggestion}"
    assert refused.value.advice == "Allowed here: organisation, state."


def test_known_names_pass() -> None:
    refuse_unknown(["state"], allowed=["state"])


def test_a_view_without_filters_has_no_names() -> None:
    assert filter_names(object()) == []
    assert filter_names(TenantViewSet) == ["organisation", "state"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("audit-entries?time__gte=yesterday", "such as 2026-11-30T00:00:00Z"),
        ("audit-entries?time__gte=2026-11-30T00:00:00", "a time with a time zone"),
        ("audit-entries?time__lt=2026-13-45T00:00:00Z", "a time with a time zone"),
        ("accelerators?node=abc", "an id, such as"),
        ("inference-keys?revoked=maybe", "Allowed: true, false."),
        ("nodes?health=fine", "Allowed: healthy, degraded, failed, unknown."),
        ("nodes?q=%00", "without the character U+0000"),
        ("policy-comparisons?pool=%00", "without the character U+0000"),
        ("sites?sort=slug,-slug", "each name once"),
        ("sites?brief=maybe", "Allowed: true, false."),
        ("sites?page_size=" + "9" * 5000, "1 … 1000"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_with_what_is_allowed(
    query: str, detail: str
) -> None:
    answer = make_api_client(make_admin()).get(f"/api/v1/{query}")

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid-parameter")
    assert detail in answer.json()["hint"]
