"""Power is measured, estimated or unknown, and says which."""

from decimal import Decimal

import pytest

from controlplane.finance.power import Power, node_power, power_cost

FACTOR = Decimal("0.70")


@pytest.mark.parametrize(
    ("measured", "tdp", "host", "expected"),
    [
        pytest.param(
            [650.0, 350.0], [1000.0] * 2, Decimal(500), Power(Decimal("1.5"), "measured"),
            id="measured",
        ),
        pytest.param(
            [650.0, None], [1000.0] * 2, Decimal(600), Power(Decimal("2.0"), "estimated"),
            id="one-without-a-reading-makes-an-estimate",
        ),
        pytest.param(
            [None], [1000.0], None, Power(Decimal("0.7"), "estimated"), id="host-unknown"
        ),
        pytest.param(
            [650.0], [1000.0], None, Power(Decimal("0.65"), "estimated"),
            id="measured-without-the-host-is-an-estimate",
        ),
        pytest.param([None], [None], Decimal(600), Power(None, "unknown"), id="nobody-knows"),
        pytest.param([], [], Decimal(600), Power(None, "unknown"), id="no-accelerators"),
    ],
)  # fmt: skip
def test_node_power(
    measured: list[float | None], tdp: list[float | None], host: Decimal | None, expected: Power
) -> None:
    power = node_power(measured_watts=measured, tdp_watts=tdp, host_watts=host, power_factor=FACTOR)

    assert power == expected


def test_power_cost_is_kilowatts_times_pue_times_tariff() -> None:
    cost = power_cost(
        kilowatts=Decimal("2.0"),
        pue=Decimal("1.3"),
        tariff_per_kwh=Decimal("0.10"),
        seconds=1800,
    )

    assert cost == Decimal("0.13")


def test_an_unknown_factor_is_not_a_cost_of_zero() -> None:
    assert (
        power_cost(kilowatts=None, pue=Decimal(1), tariff_per_kwh=Decimal(1), seconds=3600) is None
    )
    assert (
        power_cost(kilowatts=Decimal(1), pue=Decimal(1), tariff_per_kwh=None, seconds=3600) is None
    )
