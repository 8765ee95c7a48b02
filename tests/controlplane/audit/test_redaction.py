"""What may stand in an entry."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.audit.canonical import canonical
from controlplane.audit.redaction import LIMIT_BYTES, changed, safe


def test_a_secret_becomes_part_of_its_hash() -> None:
    kept = safe({"api_token": "cst_x", "nested": {"password": "p"}, "name": "n"})

    assert kept["name"] == "n"
    assert set(kept["api_token"]) == set(kept["nested"]["password"]) == {"redacted", "sha256_16"}
    assert "cst_x" not in str(kept)


def test_too_much_becomes_its_hash() -> None:
    kept = safe({"text": "x" * (LIMIT_BYTES + 1)})

    assert kept["cut"] is True
    assert len(kept["sha256"]) == 64


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (0.1, "0.1"),
        (Decimal("1.50"), "1.50"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00Z"),
        ("a\0b", "ab"),
        ("\ud800", "?"),
        (None, None),
        (True, True),
    ],
)
def test_values_are_plain(value: object, kept: object) -> None:
    assert safe({"value": value}) == {"value": kept}


def test_what_is_missing_on_one_side_is_a_difference() -> None:
    assert changed({"a": 1}, {"a": 1, "b": 2}) == ({}, {"b": 2})


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=10,
        ),
        max_size=5,
    )
)
def test_whatever_is_safe_has_a_canonical_form(values: dict[str, object]) -> None:
    form = canonical(safe(values))

    assert canonical(json.loads(form)) == form
