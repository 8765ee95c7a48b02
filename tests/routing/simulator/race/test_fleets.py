"""The fleets of the race."""

import pytest

from routing.simulator.fleet import build_fleet
from routing.simulator.race.fleets import FLEETS


@pytest.mark.parametrize("name", FLEETS)
def test_every_fleet_can_be_built_has_a_price_and_its_troubles_hit_an_endpoint(name: str) -> None:
    fleet = FLEETS[name]
    document = build_fleet(fleet.members, model=fleet.model).in_currency("USD").document
    endpoints = {spec.id for spec in document.endpoints}

    assert all(spec.price_per_hour is not None for spec in document.endpoints)
    assert all(spec.watts is not None for spec in document.endpoints)
    assert {trouble.endpoint for trouble in fleet.troubles} <= endpoints


@pytest.mark.parametrize("name", FLEETS)
def test_a_fleet_is_mixed_when_speeds_in_it_differ(name: str) -> None:
    fleet = FLEETS[name]
    kinds = {(member.accelerator, member.speed) for member in fleet.members}

    assert fleet.is_mixed is (len(kinds) > 1)


def test_the_document_does_not_know_who_is_sick() -> None:
    fleet = FLEETS["one-sick"]
    built = build_fleet(fleet.members, model=fleet.model)

    assert len({spec.speed_class for spec in built.document.endpoints}) == 1
    assert list(built.speeds.values()) == [0.3]
