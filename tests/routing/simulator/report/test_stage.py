"""Numbers of a stage, by the definitions of published tables."""

import msgspec
import pytest

from routing.simulator.fleet import Member, build_fleet
from routing.simulator.report.stage import StageReport, is_good, report_of, spread_of, stage_reports
from routing.simulator.requests import Arrival, Course, Prompt, Stage
from routing.simulator.scenario import Scenario
from routing.simulator.simulation import Simulation
from routing.simulator.workloads.shared_prefix import SharedPrefix, ladder

STAGE = Stage(name="10 qps", rate_qps=10.0, seconds=3.0)


def _scenario(*, price: str | None = "2", watts: float | None = 500.0) -> Scenario:
    members = [Member(accelerator="amd-mi325x", count=2, price_per_hour=price, watts=watts)]
    fleet = build_fleet(members, model="granite-4.1-8b").in_currency("USD")
    workload = SharedPrefix(
        id="small", stages=ladder((5, 3), (10, 3), warm_up=1), groups=3, prompts=2,
        system_tokens=640, question_tokens=128, output_tokens=40,
    )  # fmt: skip
    return Scenario(document=fleet.document, profiles=fleet.profiles, workload=workload)


def _course(sent: float, first: float | None, end: float | None, **rest: object) -> Course:
    arrival = Arrival(at=sent, prompt=Prompt((), 1000), output_tokens=101)
    course = Course(0, 0, arrival, sent, first_token_at=first, ended_at=end)
    course.outcome, course.output_tokens = ("ok", 101) if end is not None else ("open", 0)
    for name, value in rest.items():
        setattr(course, name, value)
    return course


def _run(scenario: Scenario) -> list[StageReport]:
    run = Simulation(scenario, seed=1)
    run.run()
    return stage_reports(run)


def test_throughput_counts_the_drain() -> None:
    courses = [_course(0.0, 1.0, 5.0), _course(1.0, 2.0, 11.0)]

    report = report_of(STAGE, courses, _scenario())

    assert report.seconds == 11.0
    assert report.output_tokens_per_s == pytest.approx(202 / 11)
    assert report.input_tokens_per_s == pytest.approx(2000 / 11)


def test_percentiles_leave_failures_out_and_count_them_beside() -> None:
    lost = _course(0.0, 90.0, 100.0, outcome="timeout", output_tokens=0)
    courses = [_course(0.0, 1.0, 5.0), lost]

    report = report_of(STAGE, courses, _scenario())

    assert report.ends == {"ok": 1, "timeout": 1}
    assert (report.sent, report.ok) == (2, 1)
    assert report.ttft is not None
    assert report.ttft.p99 == 1.0


@pytest.mark.parametrize(
    ("first", "end", "is_met"),
    [(3.0, 11.0, True), (3.01, 11.0, False), (3.0, 11.1, False)],
)
def test_goodput_asks_for_both_targets(first: float, end: float, is_met: bool) -> None:
    assert is_good(_course(0.0, first, end), _scenario()) is is_met


def test_the_share_within_the_targets_counts_what_was_sent() -> None:
    lost = _course(0.0, 1.0, 100.0, outcome="timeout", output_tokens=0)

    report = report_of(STAGE, [_course(0.0, 1.0, 5.0), lost], _scenario())

    assert report.good_share == 0.5
    assert report_of(STAGE, [], _scenario()).good_share is None


def test_an_answer_of_one_token_has_no_time_per_token_to_miss() -> None:
    assert is_good(_course(0.0, 1.0, 1.0, output_tokens=1), _scenario())


def test_a_stage_that_nobody_was_answered_in_has_no_times_and_no_cost_per_token() -> None:
    report = report_of(STAGE, [_course(0.0, None, None)], _scenario())

    assert report.ttft is report.tpot is report.prefix_hit_rate is None
    assert report.cost_per_million_output_tokens is None
    assert report.output_tokens_per_s == 0.0


def test_the_time_of_all_replicas_adds_up() -> None:
    reports = _run(_scenario())

    for report in reports:
        assert report.spent is not None
        spent = report.spent
        total = spent.prefill + spent.decode + spent.idle + spent.down
        # The stage as its replicas see it begins with its first moment, not with its first request.
        assert total >= 2 * report.seconds - 1e-6
        assert spent.prefill > 0
        assert spent.decode > 0
        assert sum(one.answered for one in report.replicas) == report.ok


def test_money_and_energy_follow_from_prices_and_draws() -> None:
    (_, report) = _run(_scenario())

    assert report.currency == "USD"
    assert report.cost is not None
    assert float(report.cost) == pytest.approx(2 * 2 * report.seconds / 3600, abs=1e-4)
    assert report.energy_wh is not None
    assert 0.18 * 1000 * report.seconds / 3600 < report.energy_wh < 1000 * report.seconds / 3000


def test_without_prices_and_draws_money_and_energy_are_unknown() -> None:
    (_, report) = _run(_scenario(price=None, watts=None))

    assert report.cost is report.cost_per_million_output_tokens is report.energy_wh is None


def test_equal_runs_give_equal_bytes() -> None:
    assert msgspec.json.encode(_run(_scenario())) == msgspec.json.encode(_run(_scenario()))


def test_an_open_stage_reports_what_it_has() -> None:
    run = Simulation(_scenario(), seed=1)
    run.advance(1.5)

    (report,) = stage_reports(run)

    assert report.is_warm_up
    assert report.sent > 0
    assert report.spent is not None
    assert report.spent.idle < 3.0


def test_nothing_known_has_no_spread() -> None:
    assert spread_of([None]) is None
    assert spread_of([1.0, None, 3.0]) is not None
