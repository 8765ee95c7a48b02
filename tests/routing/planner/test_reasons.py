"""Reasons follow from figures."""

from typing import Any

import pytest

from routing.planner import reasons
from routing.planner.advice import Bound, Option
from routing.planner.engines import Engine, Refusal, engine_of
from routing.planner.placement import Share
from routing.planner.trial import Outcome
from routing.planner.words import Language, sentence
from routing.simulator.report.stage import Spread
from tests.routing.planner.fleets import demand, group

SPOKEN: tuple[Language, ...] = ("en", "ko")
SPREAD = Spread(mean=0.2, p50=0.2, p90=0.3, p99=0.4)


def option(goodput: float, *, kind: Any = "both", limited_by: str = "both") -> Option:
    share = Share(group="amd-mi325x", width=1, prefill=1, decode=1)
    return Option(
        kind=kind,
        placement=(share,),
        bound=Bound(
            capacity_rps=10.0, limited_by=limited_by, ttft_seconds=0.1, tpot_seconds=0.01,
            hit_share=0.0,
        ),
        outcome=Outcome(
            rate_rps=goodput, goodput_rps=goodput, good_share=1.0, output_tokens_per_s=100.0,
            ttft=SPREAD, tpot=SPREAD, utilisation=0.5, prefix_hit_rate=None, pair_share=0.4,
            requests=100, scale=1.0,
        ),
        accelerators=2, moves=2, cost_per_hour=None, cost_per_million_output=None,
        watts_at_most=None,
    )  # fmt: skip


def engines() -> dict[str, Engine]:
    engine = engine_of(group(), demand(), 1)
    assert isinstance(engine, Engine)
    return {"amd-mi325x": engine}


def codes(found: Any) -> list[str]:
    return [reason.code for reason in found]


@pytest.mark.parametrize(
    ("goodput", "offered", "expected"),
    [
        (4.0, 4.0, ["meets-target", "spare"]),
        (9.0, 9.0, ["meets-target"]),
        (9.0, 12.0, ["misses-target"]),
    ],
)
def test_targets_are_met_missed_or_met_with_room(
    goodput: float, offered: float, expected: list[str]
) -> None:
    found = reasons.plain_choice("keep", option(goodput), [], demand(offered))

    assert codes(found) == expected


def test_no_split_is_explained_by_figures_hand_over_and_limit() -> None:
    engine = engines()["amd-mi325x"]
    split = option(5.0, kind="split", limited_by="decode")

    found = reasons.no_split(option(10.0), split, demand(), engines())

    assert codes(found) == ["do-not-split", "hand-over-cost", "limited-by-decode"]
    assert found[0].numbers["gain"] == pytest.approx(-0.5)
    link = engine.profile.link_bytes_per_second
    expected = 1000 * engine.profile.kv_bytes_per_token / link
    assert found[1].numbers["seconds"] == pytest.approx(
        expected + engine.profile.transfer_setup_seconds
    )


def test_alternatives_are_worse_or_not_clearly_better() -> None:
    chosen = option(10.0)

    worse = reasons.with_comparison(option(8.0, kind="split"), chosen, demand())
    equal = reasons.with_comparison(option(10.0), chosen, demand())

    assert codes(worse.reasons)[0] == "less-goodput"
    assert "pair-share" in codes(worse.reasons)
    assert codes(equal.reasons)[0] == "no-clear-gain"


def test_a_winning_split_says_by_how_much() -> None:
    (first, *_others) = reasons.split_wins(option(12.0, kind="split"), option(10.0))

    assert first.code == "split-wins"
    assert first.numbers["gain"] == pytest.approx(0.2)
    assert codes(reasons.split_wins(option(1.0), None)) == ["split-only"]


def test_memory_is_told_in_gigabytes() -> None:
    found = reasons.refusal(Refusal("memory", "m", needed_bytes=2e11, there_bytes=8e10))

    assert found.code == "fit-memory"
    assert found.numbers["needed_gb"] == 200.0


def test_over_a_base_that_answers_nothing_in_time_no_gain_is_known() -> None:
    none, now = option(0.0), option(0.0, kind="now")
    (split, *_rest) = reasons.split_wins(option(5.0, kind="split"), none)
    both = reasons.plain_choice("both", option(5.0), [now], demand())[-1]
    refused = reasons.no_split(none, option(0.0, kind="split"), demand(), engines())[0]
    (other, *_rest) = reasons.with_comparison(option(0.0), none, demand()).reasons

    assert split.code == "split-wins-over-nothing"
    assert both.code == "both-wins-over-nothing"
    assert refused.code == "do-not-split-nothing"
    assert other.code == "as-nothing"
    assert [one.numbers["gain"] for one in (split, both, refused, other)] == [None] * 4
    told = [sentence(one, language) for one in (split, both, refused, other) for language in SPOKEN]
    assert not any("?" in text or "+100" in text for text in told)
