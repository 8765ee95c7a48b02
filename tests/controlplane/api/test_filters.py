"""What is not known is refused."""

import pytest

from controlplane.api.errors import UnknownParameterError
from controlplane.api.filters import filter_names, refuse_unknown
from controlplane.tenancy.api import TenantViewSet


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
