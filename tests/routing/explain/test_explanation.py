"""Sentences a platform engineer would say, in both languages; goldens beside the scenario."""

import json
import re
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.core.record import record_of
from routing.core.signals import EngineSignals
from routing.explain import english, korean
from routing.explain.explanation import Language, explain, rule_in_words, seconds_in_words
from tests.routing.explain.records import candidate, record, shadow
from tests.routing.pool.builders import endpoint_dict, make_request, make_router, serve

GOLDENS = Path(__file__).parent / "goldens"

SCENARIOS: dict[str, dict[str, Any]] = {
    "cache": record(
        candidate("gpu-kr-07", hit=6144, wait=0.04, prefill=0.04, capacity=0.12, decode=1.66),
        candidate("gpu-kr-03", hit=2048, wait=0.02, prefill=0.25, capacity=0.14, decode=1.66),
    ),
    "wait": record(
        candidate("gpu-kr-07", wait=0.04), candidate("gpu-kr-03", wait=0.31)
    ),
    "faster-prompt": record(candidate("b", prefill=0.2), candidate("a", prefill=0.9)),
    "decode": record(
        candidate("b", decode=1.6, tpot=0.009), candidate("a", decode=4.05, tpot=0.0225)
    ),
    "harm": record(candidate("b", harm=0.12), candidate("a", harm=0.61)),
    "slo": record(candidate("b", slo=0.0), candidate("a", slo=2.0)),
    "cold": record(candidate("b"), candidate("a", warm_up=1.5)),
    "transfer": record(candidate("b", transfer=0.02), candidate("a", transfer=0.4)),
    "money": record(candidate("b", money=0.02), candidate("a", money=0.4)),
    "home": record(
        candidate("b", hit=6000, wait=0.9),
        candidate("a", hit=0, prefill=0.5),
        reason="longest hit, where leaving gains too little",
    ),
    "new-home": record(
        candidate("b", hit=0, prefill=0.5),
        candidate("a", hit=6000),
        reason="home of its prefix, where computing it pays for those that follow",
    ),
    "tie": record(candidate("b", decode=2.0), candidate("a", decode=2.0)),
    "tie-hit": record(candidate("b", hit=4000, decode=2.0), candidate("a", decode=2.0)),
    "near-tie": record(candidate("b", decode=2.01), candidate("a", decode=2.0)),
    "only-left": record(candidate("b"), removed={"state": 2, "jurisdiction": 1}, runner_up=None),
    "only-one": record(candidate("b"), runner_up=None),
    "forced": record(candidate("b"), candidate("a"), request={"forced": ["b"]}),
    "policy-dearer": record(
        candidate("b", decode=3.0), candidate("a", decode=2.0), policy="round-robin"
    ),
    "policy-cheapest": record(
        candidate("b", decode=1.0), candidate("a", decode=2.0), policy="llm-d-weighted"
    ),
    "pair": record(
        candidate("d1", prefill_by="p1", transfer=0.13, decode=1.5, other_way=("", 0.25)),
        candidate("d2", decode=3.0),
        prefill="p1",
    ),
    "local": record(
        candidate("d1", hit=500, decode=1.5, other_way=("p1", 0.31)), candidate("d2", decode=3.0)
    ),
    "outcome": record(
        candidate("b", hit=6144),
        candidate("a", prefill=1.0),
        outcome={"outcome": "error", "status": 502, "ttft_seconds": 0.093, "cached_tokens": 6100},
        shadows=[
            shadow("llm-d-weighted", "a", 0.33),
            shadow("random", "b", 0.0, agrees=True),
            shadow("dynamo", "a", -0.02),
        ],
        degraded=["no-engine-signals", "something-else"],
        fallbacks=["a", "c"],
    ),
    "refused-denied": record(refusal=(403, "policy-denied"), removed={"jurisdiction": 4}),
    "refused-saturated": record(
        candidate("b", wait=300.0), refusal=(429, "pool-saturated", 181.0)
    ),
    "refused-other": record(refusal=(429, "tenant-tokens")),
    "refused-none": record(refusal=(503, "no-capacity", 1.0), removed={"breaker": 2}),
}  # fmt: skip


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_reads_as_its_golden_says(name: str, language: Language) -> None:
    told = explain(SCENARIOS[name], language=language)
    golden = json.loads((GOLDENS / f"{language}.json").read_text())

    assert [told.kind, told.sentence, *told.points] == golden[name]


@pytest.mark.lesson("T01")
def test_a_real_decision_says_by_how_much_it_won_and_why() -> None:
    router = make_router(endpoint_dict("gpu-kr-07"), endpoint_dict("gpu-kr-03"))
    request = make_request("word " * 6000)
    home = serve(router, request, now=0.0)
    router.observe(home, EngineSignals(running=0, waiting=0), now=1.0)

    told = explain(record_of(router.decide(request, now=1.0)))

    other = next(name for name in ("gpu-kr-07", "gpu-kr-03") if name != home)
    assert told.kind == "price-cache"
    assert re.fullmatch(
        rf"{home} won by \d\.\d+ s over {other} because it holds [\d,]+ of [\d,]+ prompt tokens\.",
        told.sentence,
    )


def test_a_real_refusal_says_who_was_filtered_by_which_rule() -> None:
    router = make_router(endpoint_dict("a", state="draining"), endpoint_dict("b", state="draining"))

    told = explain(record_of(router.decide(make_request(), now=1.0)))

    assert told.kind == "refused-no-capacity"
    assert "Filtered before pricing: 2 draining (state)." in told.points


@pytest.mark.parametrize("part", ["SENTENCES", "POINTS", "RULES", "DEGRADED"])
def test_both_languages_have_the_same_sentences_with_facts_that_exist(part: str) -> None:
    ours, theirs = getattr(english, part), getattr(korean, part)

    assert list(ours) == list(theirs)
    for key, text in theirs.items():
        assert _names(text) <= _names(ours[key]), key


def test_korean_particles_that_depend_on_the_noun_never_follow_a_placeholder() -> None:
    texts = [
        text
        for part in ("SENTENCES", "POINTS", "RULES", "DEGRADED")
        for text in getattr(korean, part).values()
    ]

    wrong = [text for text in texts if re.search(r"\}(은|는|이|가|을|를|와|과|으로)(\s|$)", text)]
    assert not wrong


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.21, "0.21 s"), (0.0042, "0.004 s"), (0.0997, "0.10 s"), (12.34, "12.3 s"),
     (0.0, "0 s"), (1234.5, "1,234 s"), (None, "-"), (float("nan"), "-")],
)  # fmt: skip
def test_seconds_have_as_many_digits_as_are_worth_reading(value: float | None, text: str) -> None:
    assert seconds_in_words(value) == text


def test_an_unknown_rule_is_named_as_it_is() -> None:
    assert rule_in_words("brand-new", 3) == "3 by rule brand-new"
    assert rule_in_words("brand-new", 3, language="ko") == "규칙 brand-new: 3개"


@settings(max_examples=80, deadline=None)
@given(
    left_out=st.sets(st.sampled_from(sorted(SCENARIOS["outcome"]))),
    name=st.sampled_from(sorted(SCENARIOS)),
    language=st.sampled_from(["en", "ko"]),
)
def test_a_record_with_parts_missing_is_explained_as_far_as_it_goes(
    left_out: set[str], name: str, language: Language
) -> None:
    kept = {key: value for key, value in SCENARIOS[name].items() if key not in left_out}

    told = explain(kept, language=language)

    assert told.sentence
    assert "{" not in told.sentence


def _names(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}
