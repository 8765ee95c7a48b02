"""Fleets of scenario files: prices, known names, pool documents."""

import pytest

from routing.core.document import DocumentError, EndpointSpec, PoolDocument, encode_document
from routing.simulator import scenario_fleet
from routing.simulator.notes import Note
from routing.simulator.scenario_file import study_of
from tests.routing.pool.builders import endpoint_dict, make_document

WORKLOAD = {"id": "no-sharing", "stages": [[5, 4]]}


def _document(*members: dict[str, object], **more: object) -> tuple[PoolDocument, tuple[Note, ...]]:
    tree = {"model": "granite-4.1-8b", "fleet": list(members), "workload": WORKLOAD} | more
    study = study_of(tree)
    return study.runs[0].scenario.document, study.notes


def _first(document: PoolDocument) -> EndpointSpec:
    return document.endpoints[0]


def test_list_prices_stand_in_and_are_told() -> None:
    document, notes = _document({"accelerator": "amd-mi325x"})

    assert document.currency == "USD"
    assert _first(document).price_per_hour is not None
    assert notes == (Note("list-prices"),)


def test_stated_prices_are_taken_as_they_are() -> None:
    members = (
        {"accelerator": "amd-mi325x", "price_per_hour": "2900"},
        {"accelerator": "intel-gaudi3"},
    )
    document, notes = _document(*members, currency="KRW")

    assert [spec.price_per_hour for spec in document.endpoints] == ["2900", None]
    assert (document.currency, notes) == ("KRW", ())


def test_who_has_no_list_price_is_named() -> None:
    _, notes = _document({"accelerator": "furiosa-rngd"})

    assert notes[1] == Note("no-list-price", {"names": "furiosa-rngd"})


def test_an_unknown_fleet_names_those_that_are_known() -> None:
    with pytest.raises(DocumentError) as caught:
        scenario_fleet.known("x")

    assert "nxt-3vendor" in caught.value.allowed


def test_a_speed_class_of_another_name_needs_its_accelerator() -> None:
    raw = encode_document(make_document(endpoint_dict("e", speed_class="fast")))
    tree = {"model": "granite-4.1-8b", "workload": WORKLOAD}
    pool = {"document": "p", "accelerators": {"fast": "amd-mi325x"}}

    study = study_of(tree | {"pool": pool}, read=lambda _: raw)
    with pytest.raises(DocumentError, match="Endpoint 'e' of class 'fast'"):
        study_of(tree | {"pool": {"document": "p"}}, read=lambda _: raw)
    with pytest.raises(DocumentError, match="no endpoint 'x'"):
        study_of(tree | {"pool": pool | {"speeds": {"x": 1.0}}}, read=lambda _: raw)

    assert study.runs[0].scenario.profiles["e"].accelerator == "amd-mi325x"
