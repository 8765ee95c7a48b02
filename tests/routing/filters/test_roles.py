"""Roles as the pool document states them."""

from routing.filters.roles import DecodeFilter, PrefillFilter
from tests.routing.contexts import make_context

ROLES = ["prefill", "decode", "both"]


def test_decode_keeps_whatever_answers_clients() -> None:
    assert DecodeFilter().keep(make_context(3, roles=ROLES)).tolist() == [False, True, True]


def test_prefill_keeps_whatever_computes_prompts_for_others() -> None:
    assert PrefillFilter().keep(make_context(3, roles=ROLES)).tolist() == [True, False, False]
