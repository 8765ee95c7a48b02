"""Bytes and hashes of the chain."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.audit.canonical import canonical, link_hash


@pytest.mark.parametrize(
    ("value", "text"),
    [
        # The order of keys is that of UTF-16 code units (RFC 8785, 3.2.3).
        ({"€": 1, "\r": 2, "\ufb33": 3, "1": 4, "😀": 5, "\u0080": 6, "ö": 7},
         '{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}'),
        ([None, True, 10, "a/b\"\\\u001f"], '[null,true,10,"a/b\\"\\\\\\u001f"]'),
        ({}, "{}"),
    ],
)  # fmt: skip
def test_the_form_is_that_of_rfc_8785(value: object, text: str) -> None:
    assert canonical(value).decode() == text


def test_fractions_are_refused() -> None:
    with pytest.raises(TypeError, match="no floats"):
        canonical({"share": 0.5})


@given(st.dictionaries(st.text(), st.integers() | st.text()))
def test_the_order_of_insertion_does_not_matter(values: dict[str, object]) -> None:
    backwards = dict(reversed(values.items()))

    assert canonical(values) == canonical(backwards)
    assert json.loads(canonical(values)) == values


def test_a_link_hashes_its_number_and_its_predecessor() -> None:
    expected = hashlib.sha256(
        b"consort-audit-v1" + b"\0\0\0\0\0\0\0\x02" + b"p" * 32 + b"e" * 32
    ).digest()

    assert link_hash(seq=2, prev_hash=b"p" * 32, entry_hash=b"e" * 32) == expected
