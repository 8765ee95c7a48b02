"""One reading after another: what is loaded is read apart from what is in use."""

from routing.core.adapters import Adapters


def test_a_reading_of_adapters_in_use_keeps_those_known_to_be_loaded() -> None:
    before = Adapters(running=frozenset("a"), loaded=frozenset("ab"))

    after = Adapters(running=frozenset("b"), most=2).after(before)

    assert after == Adapters(running=frozenset("b"), loaded=frozenset("ab"), most=2)


def test_a_newer_list_replaces_an_older_one_even_by_nothing() -> None:
    assert Adapters(loaded=frozenset("ab")).with_loaded(frozenset()).loaded == frozenset()
