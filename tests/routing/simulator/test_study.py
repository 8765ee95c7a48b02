"""Studies run every policy with every seed, tell how far they are, and repeat."""

import msgspec
import pytest

from routing.simulator.scenario_file import study_of
from routing.simulator.simulation import Simulation
from routing.simulator.study import (
    Study,
    UnknownPolicyError,
    carry_out,
    share_done,
    with_policies,
    with_seeds,
)


def _study() -> Study:
    return study_of(
        {
            "name": "small",
            "model": "granite-4.1-8b",
            "fleet": [{"accelerator": "amd-mi325x", "count": 2}],
            "workload": {"id": "no-sharing", "stages": [[4, 3], [8, 3]]},
            "policies": ["random", "consort"],
        }
    )


def test_a_report_holds_every_run_and_is_the_same_again() -> None:
    reports = [carry_out(_study()) for _ in range(2)]

    assert [(run.policy, run.seed) for run in reports[0].runs] == [("random", 1), ("consort", 1)]
    assert [stage.name for stage in reports[0].runs[0].stages] == ["4 qps", "8 qps"]
    assert reports[0].fleet == {"amd-mi325x": 2}
    assert msgspec.json.encode(reports[0]) == msgspec.json.encode(reports[1])


def test_policies_meet_the_same_requests() -> None:
    report = carry_out(_study())

    sent = [[stage.sent for stage in run.stages] for run in report.runs]

    assert sent[0] == sent[1]


def test_progress_grows_to_one() -> None:
    told: list[float] = []
    carry_out(_study(), told=lambda share, what: told.append(share))

    assert told == sorted(told)
    assert told[-1] == 1.0


def test_whoever_is_told_may_end_it() -> None:
    def stop(share: float, what: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(_study(), told=stop)


def test_a_run_is_over_stage_by_stage() -> None:
    run = Simulation(_study().runs[0].scenario, seed=1)

    shares = [share_done(run)]
    while not run.is_over:
        run.clock.step()
        shares.append(share_done(run))

    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)


def test_policies_and_seeds_can_be_changed() -> None:
    study = with_seeds(with_policies(_study(), ("dynamo",)), (7, 8))

    assert [(run.policy, run.seed) for run in study.runs] == [("dynamo", 7), ("dynamo", 8)]
    assert study.runs[0].scenario.document.policy.name == "dynamo"
    with pytest.raises(UnknownPolicyError, match="No policy is called 'x'") as caught:
        with_policies(_study(), ("x",))
    assert "consort" in caught.value.allowed
