"""Every packaged fit names an engine that `profiles.yaml` has, and stages that exist."""

import pytest

from routing.simulator.calibration.targets import ROUTER_RATES, TARGETS
from routing.simulator.profiles import load_profile
from routing.simulator.published.tables import table


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_is_an_engine_with_fitted_speeds(name: str) -> None:
    target = TARGETS[name]

    assert name == f"{target.accelerator}/{target.model}"
    assert not load_profile(target.accelerator, target.model).estimate


@pytest.mark.parametrize("name", TARGETS)
def test_rates_of_a_target_were_run(name: str) -> None:
    target = TARGETS[name]
    for one in target.tables:
        rates = {row.rate_qps for row in one.rows}
        assert set(target.rates.get(one.id, ())) <= rates


def test_rates_that_tell_a_router_were_run() -> None:
    for result, rates in ROUTER_RATES.items():
        assert set(rates) <= {row.rate_qps for row in table(result).rows}
