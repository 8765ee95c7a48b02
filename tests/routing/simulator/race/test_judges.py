"""What is demanded of consort."""

import msgspec
import pytest

from routing.simulator.race.judges import Verdict, unjudged, verdicts
from routing.simulator.race.standings import Row
from tests.routing.simulator.race.rows import entry, row


def judged(one: Row, policies: tuple[str, ...] | None = None) -> list[Verdict]:
    """What is demanded of a row, as if nobody else could race."""
    everybody = policies or ("consort", *(name for name in one.policies if name != "consort"))
    name = f"{one.workload}@{one.fleet} {one.stage}"
    return [found for found in verdicts([one], policies=everybody) if found.row == name]


def _of(found: list[Verdict], demand: str) -> Verdict:
    (verdict,) = [one for one in found if one.demand == demand]
    return verdict


@pytest.mark.parametrize(("ours", "is_met"), [(9.8, True), (9.7, False), (12.0, True)])
def test_equal_speeds_ask_for_goodput_near_the_best(ours: float, is_met: bool) -> None:
    found = judged(row({"consort": entry(ours), "dynamo": entry(10.0), "random": entry(1.0)}))

    verdict = _of(found, "near-best-goodput")
    assert verdict.is_met is is_met
    assert verdict.against == "dynamo"


@pytest.mark.parametrize(("ours", "is_met"), [(10.0, True), (9.9, False)])
def test_mixed_speeds_ask_for_the_best(ours: float, is_met: bool) -> None:
    mixed = row({"consort": entry(ours), "dynamo": entry(10.0)}, is_mixed=True)

    assert _of(judged(mixed), "best-goodput").is_met is is_met


@pytest.mark.parametrize(
    ("ours", "low", "high", "is_met"),
    [(9.9, -0.5, 0.3, True), (9.9, -0.2, -0.05, False), (9.7, -0.9, 0.3, False)],
)
def test_what_the_seeds_cannot_tell_apart_is_level(
    ours: float, low: float, high: float, is_met: bool
) -> None:
    peer = msgspec.structs.replace(
        entry(10.0), goodput_behind=ours - 10.0, goodput_behind_low=low, goodput_behind_high=high
    )
    mixed = row({"consort": entry(ours), "dynamo": peer}, is_mixed=True)

    assert _of(judged(mixed), "best-goodput").is_met is is_met


@pytest.mark.parametrize(("ours", "is_met"), [(9.9, True), (9.89, False)])
def test_one_percent_worse_than_random_is_allowed_and_no_more(ours: float, is_met: bool) -> None:
    found = judged(row({"consort": entry(ours), "random": entry(10.0)}))

    assert _of(found, "no-worse-than-random").is_met is is_met


def test_three_vendors_at_85_are_judged_by_throughput_against_llmd_and_the_service() -> None:
    policies = {
        "consort": entry(20.0, 25_000.0),
        "llm-d-weighted": entry(10.0, 16_000.0),
        "llm-d-token-aware": entry(10.0, 20_000.0),
        "random": entry(5.0, 13_000.0),
    }
    found = judged(row(policies, rate=85.0, fleet="nxt-3vendor", is_mixed=True))

    over_llmd, over_service = (
        _of(found, "throughput-over-llm-d"),
        _of(found, "throughput-over-service"),
    )
    assert (over_llmd.figure, over_llmd.against, over_llmd.is_met) == (
        1.25, "llm-d-token-aware", True,
    )  # fmt: skip
    assert over_service.figure == pytest.approx(25 / 13)
    assert not over_service.is_met


def test_three_vendors_at_70_are_judged_by_goodput_against_llmd() -> None:
    policies = {"consort": entry(15.0), "llm-d-precise": entry(10.0)}
    found = judged(row(policies, rate=70.0, fleet="nxt-3vendor", is_mixed=True))

    assert _of(found, "goodput-over-llm-d").figure == 1.5


def test_of_nothing_against_nothing_nobody_can_tell() -> None:
    found = judged(row({"consort": entry(0.0), "random": entry(0.0)}))

    assert [(one.figure, one.is_met, one.why_open) for one in found] == [
        (None, None, "nothing-served"), (None, None, "nothing-served"),
    ]  # fmt: skip


def test_something_against_nothing_is_enough_and_no_figure() -> None:
    found = judged(row({"consort": entry(1.0), "random": entry(0.0)}))

    assert [(one.figure, one.is_met) for one in found] == [(None, True), (None, True)]


def test_a_row_without_consort_or_without_peers_is_not_judged() -> None:
    alone = judged(row({"consort": entry(1.0)}), policies=("consort", "random"))
    others = judged(row({"random": entry(1.0)}))

    assert {(one.is_met, one.why_open) for one in alone} == {(None, "peers-not-run")}
    assert {(one.is_met, one.why_open) for one in others} == {(None, "not-run")}


@pytest.mark.parametrize(("ours", "is_met"), [(20.0, None), (5.0, False)])
def test_without_one_of_the_peers_the_best_can_be_missed_but_not_met(
    ours: float, is_met: bool | None
) -> None:
    some = row({"consort": entry(ours), "random": entry(10.0)})

    best = _of(judged(some, policies=("consort", "random", "dynamo")), "near-best-goodput")

    assert best.is_met is is_met
    assert best.why_open == ("peers-not-run" if is_met is None else None)


def test_demands_on_three_vendors_without_a_row_are_not_judged() -> None:
    found = verdicts([])

    assert sorted(one.demand for one in found) == [
        "goodput-over-llm-d", "throughput-over-llm-d", "throughput-over-service",
    ]  # fmt: skip
    assert {(one.is_met, one.why_open) for one in found} == {(None, "not-run")}


def test_a_quick_race_keeps_figures_without_judging() -> None:
    (first, *_rest) = unjudged(judged(row({"consort": entry(1.0), "random": entry(2.0)})), "quick")

    assert (first.figure, first.is_met, first.why_open) == (0.5, None, "quick")
