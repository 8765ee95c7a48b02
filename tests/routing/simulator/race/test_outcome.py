"""The whole report of a race."""

import json

from routing.simulator.race.heat import Heat, HeatReport
from routing.simulator.race.outcome import outcome_of
from tests.routing.simulator.race.rows import stage


def _reports() -> list[HeatReport]:
    cases = [("pd-5k@pd-4p4d-mi325x", policy) for policy in ("random", "consort")]
    cases += [(f"split:pd-5k@{split}", "consort") for split in ("nxt-3vendor", "pd-3vendor")]
    return [
        HeatReport(heat=Heat(case=case, policy=policy, seed=1), stages=(stage(5.0),))
        for case, policy in cases
    ]


def test_rows_verdicts_and_splits_are_in_it() -> None:
    report = outcome_of(_reports(), is_quick=False)

    told = json.loads(report.as_json())
    assert set(told["rows"][0]["policies"]) == {"random", "consort"}
    assert {"workload", "fleet", "rate_qps"} <= set(told["rows"][0])
    assert [one["demand"] for one in told["verdicts"]] == [
        "near-best-goodput", "no-worse-than-random", "throughput-over-llm-d",
        "throughput-over-service", "goodput-over-llm-d",
    ]  # fmt: skip
    assert [row["split"] for row in told["splits"]] == ["nxt-3vendor", "pd-3vendor"]
    assert told["advice"][0]["pays"] is False


def test_a_quick_race_judges_nothing() -> None:
    assert {one.is_met for one in outcome_of(_reports(), is_quick=True).verdicts} == {None}


def test_equal_races_give_equal_bytes() -> None:
    first, second = (outcome_of(_reports(), is_quick=True).as_json() for _ in range(2))

    assert first == second
