"""Published routers: documented freshness, fitted slowness, and a Service that has neither."""

from routing.simulator.calibration.routers import router_of
from routing.simulator.scenario import Surroundings


def test_work_of_a_router_grows_with_its_pool() -> None:
    small, large = (router_of("nxt", endpoints=count) for count in (4, 20))

    assert large.router_seconds_per_open_request == 5 * small.router_seconds_per_open_request > 0
    assert large.router_seconds_per_request == small.router_seconds_per_request


def test_a_source_without_an_entry_has_a_router_without_a_limit() -> None:
    around = router_of("precise07", endpoints=8)

    assert around.router_seconds_per_open_request == 0
    assert around.scrape_seconds == 0.05


def test_a_service_costs_nothing() -> None:
    assert router_of("service", endpoints=20) == Surroundings()
