"""Labels, names and selectors stay within what a cluster allows, and do not meet."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.kubernetes import labels

NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


@given(st.text(min_size=1, max_size=200), st.integers(16, 63))
def test_every_text_becomes_a_name_that_fits(text: str, most: int) -> None:
    name = labels.object_name(text, most)

    assert len(name) <= most
    assert NAME.fullmatch(name)
    assert labels.object_name(name, most) == name


@given(st.text(min_size=1, max_size=100), st.text(min_size=1, max_size=100))
def test_two_texts_have_two_names(one: str, other: str) -> None:
    if one != other:
        assert labels.object_name(one) != labels.object_name(other)
        assert labels.label_value(one) != labels.label_value(other)


@given(st.text(max_size=200))
def test_every_text_becomes_a_label_value_that_fits(text: str) -> None:
    value = labels.label_value(text)

    assert len(value) <= 63
    assert value == "" or VALUE.fullmatch(value)


@pytest.mark.parametrize("text", ["chat", "chat-eu-1", "a"])
def test_a_name_that_fits_stays(text: str) -> None:
    assert labels.object_name(text) == text


def test_capital_letters_do_not_lead_to_the_name_of_another() -> None:
    assert labels.object_name("Chat") != labels.object_name("chat")


def test_a_name_without_characters_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one character"):
        labels.object_name("")


def test_a_selector_asks_for_all_values_in_a_fixed_order() -> None:
    assert labels.selector({"b": "2", "a": "1"}) == "a=1,b=2"


def test_all_that_is_ours_carries_the_name_of_its_manager() -> None:
    found = labels.ours(pool="chat", workload="gpu 1/0")

    assert found[labels.MANAGED_BY] == labels.MANAGER
    assert found[labels.POOL] == "chat"
    assert found[labels.WORKLOAD].startswith("gpu-1-0-")


@pytest.mark.parametrize("text", ["a/b", "..", "a/../b", "", "a b", "%2e", "A", "a" * 254, "a?b"])
def test_a_text_that_would_lead_a_path_elsewhere_is_no_name(text: str) -> None:
    assert not labels.is_object_name(text)


@pytest.mark.parametrize("text", ["gpu-1.example", "system:node", "1st"])
def test_subdomains_and_names_of_roles_are_names(text: str) -> None:
    assert labels.is_object_name(text)
