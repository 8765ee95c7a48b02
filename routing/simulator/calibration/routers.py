"""How fast the published routers were: their surroundings, fitted or stated, by source."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from routing.simulator.scenario import Surroundings

_FILE = Path(__file__).with_name("routers.yaml")


def router_of(source: str, *, endpoints: int) -> Surroundings:
    """Of the router in the results of a source; one without a limit for sources without an entry.

    What an open request adds grows with the endpoints of the pool, as its makers say of its work.
    `service` is a Kubernetes Service, which costs nothing that these tables could tell.
    """
    if source == "service":
        return Surroundings()
    entry = _load()["every"] | (_load()["routers"].get(source) or {})
    return Surroundings(
        scrape_seconds=_value(entry, "scrape_seconds"),
        router_seconds_per_request=_value(entry, "seconds_per_request"),
        router_seconds_per_open_request=endpoints
        * _value(entry, "seconds_per_open_request_and_endpoint"),
    )


def _value(entry: dict[str, Any], name: str) -> float:
    return float(entry[name]["value"]) if name in entry else 0.0


@lru_cache(maxsize=1)
def _load() -> dict[str, Any]:
    # Imported here: whoever only simulates does not need it.
    import yaml

    with _FILE.open("rb") as file:
        data: dict[str, Any] = yaml.safe_load(file)
    return data
