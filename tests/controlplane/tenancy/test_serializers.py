"""What the API of tenancy takes in."""

import pytest

from controlplane.tenancy.serializers import ApiTokenInput, TenantChangeInput


@pytest.mark.parametrize(
    ("body", "member"),
    [
        ({"name": "a", "scopes": []}, "scopes"),
        ({"name": "a", "scopes": ["x:read"], "expires_in_days": 366}, "expires_in_days"),
        ({"name": "", "scopes": ["x:read"]}, "name"),
        ({"name": "a", "scopes": ["x:read"], "owner": "ana"}, "owner"),
    ],
)
def test_a_token_has_bounds(body: dict[str, object], member: str) -> None:
    given = ApiTokenInput(data=body)

    assert not given.is_valid()
    assert list(given.errors) == [member]


def test_a_change_of_a_tenant_needs_a_reason_and_nothing_else() -> None:
    given = TenantChangeInput(data={"change_reason": "moved"})

    assert given.is_valid()
    assert given.validated_data == {"reason": "moved"}
