"""Power of a node and what it costs: kW x PUE x price of a kilowatt-hour."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from controlplane.finance.money import EXACT, divided, rounded

MEASURED, ESTIMATED, UNKNOWN = "measured", "estimated", "unknown"
_WATT = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class Power:
    """Power of a node; `source` says whether anybody measured it."""

    kilowatts: Decimal | None
    source: str


def node_power(
    *,
    measured_watts: Sequence[float | None],
    tdp_watts: Sequence[float | None],
    host_watts: Decimal | None,
    power_factor: Decimal,
) -> Power:
    """Power of a node from one value per accelerator each.

    Measured if every accelerator was; else TDP x factor, an estimate; unknown as soon as one
    accelerator has neither. The host's power is an input and added to both; without it the figure
    is an estimate, because the machine itself is left out.
    """
    host = host_watts or Decimal(0)
    if measured_watts and all(watts is not None for watts in measured_watts):
        watts = sum((_decimal(value) for value in measured_watts), host)
        return Power(_kilowatts(watts), MEASURED if host_watts is not None else ESTIMATED)
    if not tdp_watts or any(watts is None for watts in tdp_watts):
        return Power(None, UNKNOWN)
    watts = sum((_decimal(value) * power_factor for value in tdp_watts), host)
    return Power(_kilowatts(watts), ESTIMATED)


def power_cost(
    *,
    kilowatts: Decimal | None,
    pue: Decimal | None,
    tariff_per_kwh: Decimal | None,
    seconds: int,
) -> Decimal | None:
    """Cost of so much power for some seconds, at ten decimals; None if a factor is unknown."""
    if kilowatts is None or pue is None or tariff_per_kwh is None:
        return None
    hours = divided(Decimal(seconds), Decimal(3600))
    return rounded(EXACT.multiply(kilowatts * pue * tariff_per_kwh, hours))


def _decimal(value: float | None) -> Decimal:
    return Decimal(str(value or 0))


def _kilowatts(watts: Decimal) -> Decimal:
    return rounded(watts / 1000, _WATT)
