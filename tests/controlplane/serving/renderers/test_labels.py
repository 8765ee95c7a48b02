"""Labels find exactly what they should, and ours cannot be taken over."""

import re

from hypothesis import given
from hypothesis import strategies as st

from controlplane.serving.renderers import _labels
from tests.controlplane.serving.renderers.groups import make_group

VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")


def test_asked_for_labels_do_not_replace_ours() -> None:
    group = make_group(labels={"consort.dev/pool": "other", "team": "search"})

    labels = _labels.engine_labels(group)

    assert labels["consort.dev/pool"] == "llama"
    assert labels["team"] == "search"


def test_role_both_is_said_in_the_routers_word() -> None:
    assert _labels.engine_labels(make_group(role="both"))["llm-d.ai/role"] == "prefill-decode"


def test_an_engine_of_another_type_gets_no_type() -> None:
    assert "llm-d.ai/engine-type" not in _labels.engine_labels(make_group(engine="furiosa-llm"))


@given(st.text(min_size=1, max_size=200), st.text(min_size=1, max_size=200))
def test_every_value_is_one_that_a_label_may_have(name: str, model: str) -> None:
    labels = _labels.engine_labels(make_group(name=name, pool=name, model=model))

    assert all(VALUE.fullmatch(value) and len(value) <= 63 for value in labels.values())


@given(st.text(min_size=1, max_size=200), st.text(min_size=1, max_size=200))
def test_two_names_never_share_a_selector(one: str, other: str) -> None:
    same = _labels.selector(make_group(name=one)) == _labels.selector(make_group(name=other))

    assert same == (one == other)
