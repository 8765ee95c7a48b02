"""A fit finds the coefficients behind stages that a known engine made, and refuses to cheat."""

import msgspec
import pytest

from routing.simulator.calibration.coefficients import scaled
from routing.simulator.calibration.fit import CalibrationError, Target, calibrate
from routing.simulator.calibration.targets import ROUTER_RATES, TARGETS
from routing.simulator.profiles import Profile, load_unfitted
from routing.simulator.published.running import scenario_of
from routing.simulator.published.tables import Table, table
from routing.simulator.report.stage import stage_reports
from routing.simulator.simulation import Simulation

BASE = table("nxt-h100nvl-granite-k8s")
START = load_unfitted("nvidia-h100-nvl", "granite-4.1-8b")
RATES = (3, 10)


def _made_by(profile: Profile) -> Table:
    """The published run with numbers of an engine that we know."""
    run = Simulation(
        scenario_of(BASE, profiles={profile.accelerator: profile}, rates=RATES, replicas=1), seed=1
    )
    run.run()
    reports = iter(stage_reports(run))
    rows = []
    for row, stage in zip(BASE.rows, BASE.stages, strict=True):
        if stage.is_warm_up or row.rate_qps in RATES:
            report = next(reports)
            assert report.tpot is not None
            assert report.ttft is not None
            row = msgspec.structs.replace(
                row,
                tpot_mean_s=report.tpot.mean,
                ttft_p50_s=report.ttft.p50,
                ttft_mean_s=report.ttft.mean,
            )
        rows.append(row)
    return msgspec.structs.replace(BASE, rows=tuple(rows))


def test_known_coefficients_are_found_again() -> None:
    truth = {"mfu": 1.3, "step_seconds": 1 / 1.3}
    target = Target(
        accelerator="nvidia-h100-nvl",
        model="granite-4.1-8b",
        tables=(_made_by(scaled(START, {"mfu": 1.3, "step_seconds": 1 / 1.3})),),
        rates={BASE.id: RATES},
        coefficients=("mfu", "step_seconds"),
        replicas=1,
    )
    told: list[float] = []

    fit = calibrate(
        target, start=START, steps=(0.3,), progress=lambda count, loss: told.append(loss)
    )

    assert fit.factors == pytest.approx(truth, rel=0.01)
    assert max(abs(error.log_ratio) for error in fit.errors) < 0.01
    assert len(told) == fit.evaluations
    assert told == sorted(told, reverse=True)


def test_rows_that_judge_are_refused() -> None:
    target = Target(
        accelerator="nvidia-h100-nvl",
        model="granite-4.1-8b",
        tables=(table("nxt-3v-granite-k8s"),),
        coefficients=("mfu",),
    )

    with pytest.raises(CalibrationError, match="'nxt-3v-granite-k8s' judges the simulator"):
        calibrate(target)


def test_packaged_coefficients_come_from_rows_that_may_be_fitted() -> None:
    used = [one for target in TARGETS.values() for one in target.tables]

    assert {one.use for one in used} == {"fit"}
    assert {table(result).use for result in ROUTER_RATES} == {"fit"}
