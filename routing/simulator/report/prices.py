"""Prices and power of accelerators whose owner states none; see `prices.yaml` for the sources."""

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("prices.yaml")


@dataclass(frozen=True, slots=True)
class Listed:
    """Of one replica; what nobody lists is `None`."""

    price_per_hour: Decimal | None
    """In `list_currency`."""
    watts: float | None
    """Under load."""
    price_confidence: str | None = None
    """What stands behind the price: `secondary` or `estimate`."""


@lru_cache(maxsize=1)
def _load() -> dict[str, Any]:
    # Loading YAML costs more than the rest of what a small command does.
    import yaml

    with _FILE.open("rb") as file:
        data: dict[str, Any] = yaml.safe_load(file)
    return data


def listed(accelerator: str) -> Listed:
    """Of a replica on an accelerator, or on `-tp2` two of them. An unknown one has neither."""
    name, _, degree = accelerator.partition("-tp")
    count = int(degree or 1)
    known = _load()["accelerators"].get(name, {})
    price, watts = known.get("price_per_hour"), known.get("watts")
    return Listed(
        price_per_hour=None if price is None else Decimal(price["value"]) * count,
        watts=None if watts is None else float(watts["value"]) * count,
        price_confidence=None if price is None else str(price["confidence"]),
    )


def list_currency() -> str:
    """ISO code of every listed price."""
    return str(_load()["currency"])


def idle_share() -> float:
    """Power of a loaded accelerator without work, as a share of that under load."""
    return float(_load()["idle_share"]["value"])
