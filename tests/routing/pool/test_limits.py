"""The limits that hold, and which level they come from."""

from typing import Any

import msgspec
import pytest

from routing.pool.limits import EffectiveLimit, effective_limits
from tests.routing.pool.builders import endpoint_dict, make_document


def limits_of(
    tenant: dict[str, Any] | None = None, key: dict[str, Any] | None = None
) -> dict[str, EffectiveLimit]:
    named = {"id": "k", "sha256": "0" * 64, "tenant": "t", "project": "p"}
    document = make_document(
        endpoint_dict("a"),
        tenants=[] if tenant is None else [{"tenant": "t"} | tenant],
        keys=[] if key is None else [named | key],
    )
    return {limit.name: limit for limit in effective_limits(document, "t", "k")}


@pytest.mark.lesson("T14")
@pytest.mark.parametrize(
    ("tenant", "key", "value", "decided_by"),
    [
        pytest.param({"concurrency": 5}, {"concurrency": 9}, 5, "tenant", id="tenant-is-tighter"),
        pytest.param({"concurrency": 9}, {"concurrency": 5}, 5, "key", id="key-is-tighter"),
        pytest.param({"concurrency": 5}, {"concurrency": 5}, 5, "key", id="equal"),
        pytest.param({"concurrency": 5}, {}, 5, "tenant", id="only-the-tenant"),
        pytest.param(None, {"concurrency": 5}, 5, "key", id="only-the-key"),
        pytest.param({}, {}, None, None, id="nobody"),
        pytest.param(None, None, None, None, id="neither-is-known"),
    ],
)
def test_the_tightest_level_decides_and_all_are_named(
    tenant: dict[str, Any] | None,
    key: dict[str, Any] | None,
    value: int | None,
    decided_by: str | None,
) -> None:
    limit = limits_of(tenant, key)["concurrency"]

    assert (limit.value, limit.decided_by) == (value, decided_by)
    stated = [spec for spec in (tenant, key) if spec and "concurrency" in spec]
    assert [each.value for each in limit.stated] == [spec["concurrency"] for spec in stated]


def test_lists_are_what_all_levels_allow() -> None:
    limits = limits_of({"jurisdictions": ["KR", "JP"]}, {"models": ["granite"]})

    assert (limits["jurisdictions"].value, limits["jurisdictions"].decided_by) == (
        ["KR", "JP"],
        "tenant",
    )
    assert limits["models"].value == ["granite"]
    assert limits["operators"].value is None


def test_bounds_of_the_pool_and_a_suspension_are_limits_too() -> None:
    limits = limits_of({"is_suspended": True})

    assert limits["concurrent_requests_of_all"].decided_by == "pool"
    assert limits["body_bytes"].value == 32 * 1024 * 1024
    assert (limits["is_suspended"].value, limits["is_suspended"].decided_by) == (True, "tenant")
    assert msgspec.json.encode(list(limits.values()))


def test_a_key_of_another_tenant_is_an_error() -> None:
    key = {"id": "k", "sha256": "0" * 64, "tenant": "other", "project": "p"}
    document = make_document(endpoint_dict("a"), keys=[key])

    with pytest.raises(LookupError, match="'other'"):
        effective_limits(document, "t", "k")
