"""Pools to simulate."""

import pytest

from routing.simulator.fleet import Member, build_fleet
from routing.simulator.profiles import ProfileError
from tests.routing.simulator.small import GAUDI, H100, MI325X, MODEL, member


def test_endpoints_are_named_by_class_and_position() -> None:
    fleet = build_fleet([member(H100, 2), member(GAUDI, 1)], model=MODEL)

    assert list(fleet.profiles) == ["nvidia-h100-nvl-0", "nvidia-h100-nvl-1", "intel-gaudi3-2"]
    assert [spec.vendor for spec in fleet.document.endpoints] == ["nvidia", "nvidia", "intel"]


def test_the_document_knows_data_sheets_and_not_what_engines_really_do() -> None:
    fleet = build_fleet([member(MI325X, 1, speed=0.5)], model=MODEL)

    prior, profile = fleet.document.speed_classes[MI325X], fleet.profiles["amd-mi325x-0"]
    assert prior.step_seconds != profile.step_seconds
    assert fleet.speeds == {"amd-mi325x-0": 0.5}


def test_a_pool_with_roles_is_disaggregated() -> None:
    split = build_fleet(
        [member(H100, 1, role="prefill"), member(MI325X, 1, role="decode")], model=MODEL
    )

    assert split.document.role_mode == "disaggregated"
    assert build_fleet([member(H100, 1)], model=MODEL).document.role_mode == "unified"


def test_an_unknown_card_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ProfileError, match="nvidia-h100-nvl"):
        build_fleet([Member(accelerator="abacus", count=1)], model=MODEL)
