"""Rules that send a name to one of several models: which rule, which target, for whom."""

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.core.document import DocumentError, PoolDocument, Rewrite, RewriteTarget
from routing.core.rewriting import RewriteRules, target_for
from tests.routing.pool.builders import endpoint_dict, make_document

MODELS = [
    {"name": "granite", "max_model_len": 9216},
    {"name": "granite-legal", "max_model_len": 4096, "adapter_of": "granite"},
]


def pool(*rewrites: dict[str, Any], **changes: Any) -> PoolDocument:
    return make_document(endpoint_dict("a"), models=MODELS, rewrites=list(rewrites), **changes)


def rule(*names: str, to: str = "granite") -> dict[str, Any]:
    return {"models": list(names), "targets": [{"model": to}]}


def weighted(**weights: int) -> Rewrite:
    targets = (RewriteTarget(model=name, weight=weight) for name, weight in weights.items())
    return Rewrite(targets=tuple(targets))


def callers(number: int) -> list[str]:
    return [f"caller-{index}" for index in range(number)]


def test_a_rule_for_the_name_comes_before_one_for_every_name_and_the_first_counts() -> None:
    document = pool(rule(), rule("chat", to="granite-legal"), rule("chat"), rule(to="granite"))

    rules = RewriteRules.of(document)

    assert rules.rule_for("chat") == document.rewrites[1]
    assert rules.rule_for("anything") == document.rewrites[0]


def test_without_a_rule_a_name_stays() -> None:
    assert RewriteRules.of(pool(rule("chat"))).rule_for("granite") is None


def test_names_that_only_a_rule_knows_have_the_shortest_context_of_their_targets() -> None:
    targets = [{"model": "granite"}, {"model": "granite-legal"}]
    document = pool({"models": ["chat", "granite"], "targets": targets})

    (alias,) = RewriteRules.of(document).aliases

    assert (alias.name, alias.max_model_len) == ("chat", 4096)


@pytest.mark.lesson("T07")
@given(
    weights=st.lists(st.integers(1, 1_000_000), min_size=2, max_size=5),
    seed=st.integers(0, 10**9),
)
def test_parts_are_those_of_the_weights_within_sampling_error(
    weights: list[int], seed: int
) -> None:
    """Six standard deviations of a binomial count, and one caller: never by chance."""
    one = weighted(**{f"m{place}": weight for place, weight in enumerate(weights)})
    count = 2000

    got = Counter(target_for(one, f"{seed}-{caller}") for caller in callers(count))

    for place, weight in enumerate(weights):
        share = weight / sum(weights)
        slack = 6 * math.sqrt(count * share * (1 - share)) + 1
        assert abs(got[f"m{place}"] - count * share) <= slack


@given(caller=st.text(max_size=50), weights=st.lists(st.integers(1, 100), min_size=1, max_size=5))
def test_a_caller_gets_the_same_target_each_time(caller: str, weights: list[int]) -> None:
    named = {f"m{place}": weight for place, weight in enumerate(weights)}

    first = target_for(weighted(**named), caller)

    assert target_for(weighted(**dict(reversed(named.items()))), caller) == first
    assert first in named


def test_a_larger_weight_takes_callers_and_moves_no_other() -> None:
    before = {name: target_for(weighted(old=90, new=10, third=50), name) for name in callers(2000)}
    after = {name: target_for(weighted(old=90, new=40, third=50), name) for name in callers(2000)}

    moved = {name for name in before if before[name] != after[name]}

    assert moved
    assert {after[name] for name in moved} == {"new"}


def test_targets_without_weights_share_equally() -> None:
    one = Rewrite(targets=(RewriteTarget(model="a"), RewriteTarget(model="b")))

    got = Counter(target_for(one, caller) for caller in callers(2000))

    assert abs(got["a"] - 1000) < 6 * math.sqrt(500)


@pytest.mark.parametrize(
    ("rewrite", "pointer"),
    [
        (rule("chat", to="nobody"), "/rewrites/0/targets/0/model"),
        ({"targets": []}, "/rewrites/0/targets"),
        ({"targets": [{"model": "granite", "weight": 0}]}, "/rewrites/0/targets/0/weight"),
        ({"targets": [{"model": "granite", "weight": 1_000_001}]}, "/rewrites/0/targets/0/weight"),
        (
            {"targets": [{"model": "granite", "weight": 1}, {"model": "granite-legal"}]},
            "/rewrites/0/targets",
        ),
        ({"targets": [{"model": "granite"}] * 2}, "/rewrites/0/targets/1/model"),
        ({"targets": [{"model": "granite"}], "wieght": 1}, "/rewrites/0/wieght"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused_with_its_place(
    rewrite: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(DocumentError) as refused:
        pool(rewrite)

    assert refused.value.pointer == pointer


@pytest.mark.parametrize("priority", [2**31, -(2**31) - 1, 1.5, "high"])
def test_a_priority_is_a_number_of_32_bits(priority: object) -> None:
    with pytest.raises(DocumentError) as refused:
        pool(objectives={"interactive": priority})

    assert refused.value.pointer.startswith("/objectives")
