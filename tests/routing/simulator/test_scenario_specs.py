"""Surroundings are those of the simulator, bounded."""

from dataclasses import fields

import pytest

from routing.core.refusals import DocumentError
from routing.simulator.scenario import Surroundings
from routing.simulator.scenario_specs import surroundings_of


def test_every_field_can_be_stated() -> None:
    stated = {one.name: one.default for one in fields(Surroundings)}

    assert surroundings_of(stated) == Surroundings()
    assert surroundings_of({}) == Surroundings()


@pytest.mark.parametrize(
    ("stated", "pointer"),
    [
        ({"scrape_seconds": 0}, "/surroundings/scrape_seconds"),
        ({"progress_seconds": 0.0}, "/surroundings/progress_seconds"),
        ({"event_delay_seconds": -1}, "/surroundings/event_delay_seconds"),
        ({"timeout_seconds": 0}, "/surroundings/timeout_seconds"),
        ({"router_processes": 0}, "/surroundings/router_processes"),
        ({"scrape_second": 1}, "/surroundings/scrape_second"),
    ],
)
def test_what_would_never_end_or_go_back_is_refused(stated: dict[str, float], pointer: str) -> None:
    with pytest.raises(DocumentError) as caught:
        surroundings_of(stated)

    assert caught.value.pointer == pointer
