"""Rules of model files: sources, what is inside a site, what was seen."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.serving.artefacts import (
    host_of_address,
    is_inside,
    judged,
    seconds_to_load,
    source_host,
    source_problem,
)

SHA = "a" * 64
IMAGE = f"registry.example.internal:5000/models/granite@sha256:{SHA}"


@pytest.mark.parametrize(
    "source",
    [
        ("pvc", "granite-weights", "", ""),
        ("node-path", "/srv/models/granite 4", "", ""),
        ("oci", IMAGE, "", ""),
        ("oci", "registry.local/models/granite:4.1", "", ""),
        ("s3", "s3://models/granite/4.1", "https://s3.local:9000", "/srv/models/granite"),
    ],
)
def test_a_source_of_each_kind_is_taken(source: Any) -> None:
    assert source_problem(*source) is None


@pytest.mark.parametrize(
    ("source", "field"),
    [
        (("pvc", "Granite", "", ""), "uri"),
        (("node-path", "models", "", ""), "uri"),
        (("node-path", "/srv/../etc", "", ""), "uri"),
        (("node-path", "/srv/a:b", "", ""), "uri"),
        (("oci", "granite", "", ""), "uri"),
        (("oci", "registry.local/granite", "", ""), "uri"),
        (("s3", "https://models", "https://s3.local", "/srv"), "uri"),
        (("s3", "s3://models/x", "", "/srv"), "endpoint"),
        (("s3", "s3://models/x", "ftp://s3.local", "/srv"), "endpoint"),
        (("s3", "s3://models/x", "https://me:pass@s3.local", "/srv"), "endpoint"),
        (("pvc", "granite", "https://s3.local", ""), "endpoint"),
        (("s3", "s3://models/x", "https://s3.local", ""), "node_folder"),
        (("s3", "s3://models/x", "https://s3.local", "srv"), "node_folder"),
        (("pvc", "granite", "", "/srv"), "node_folder"),
    ],
)
def test_a_source_that_does_not_fit_its_kind_names_the_field(source: Any, field: str) -> None:
    problem = source_problem(*source)

    assert problem is not None
    assert problem[0] == field


def test_only_registries_and_stores_are_asked_over_a_network() -> None:
    assert source_host("oci", IMAGE, "") == "registry.example.internal"
    assert source_host("oci", "Registry.local/m/x:1", "") == "registry.local"
    assert source_host("s3", "s3://m/x", "https://S3.Local:9000") == "s3.local"
    assert source_host("node-path", "/srv", "") is None
    assert source_host("pvc", "claim", "") is None


@pytest.mark.parametrize(
    ("host", "inside", "verdict"),
    [
        ("s3.local", ["s3.local"], True),
        ("S3.LOCAL.", ["s3.local"], True),
        ("a.example.internal", [".example.internal"], True),
        ("example.internal", [".example.internal"], False),
        ("evilexample.internal", [".example.internal"], False),
        ("huggingface.co", ["s3.local", ".example.internal"], False),
        ("s3.local", [], False),
    ],
)
def test_inside_is_a_named_host_or_one_below_a_named_domain(
    host: str, inside: list[str], verdict: bool
) -> None:
    assert is_inside(host, inside) == verdict


def test_files_that_are_there_are_the_stated_ones_or_wrong() -> None:
    assert judged("there", SHA, SHA) == "present"
    assert judged("there", "b" * 64, SHA) == "wrong"
    assert judged("there", "b" * 64, "") == "present"
    assert judged("failed", "", SHA) == "unknown"
    assert judged("fetching", "", SHA) == "fetching"


def test_time_to_load_is_unknown_without_size_or_speed() -> None:
    assert seconds_to_load(10**10, 10**9) == 10
    assert seconds_to_load(None, 10**9) is None
    assert seconds_to_load(10**10, None) is None
    assert seconds_to_load(10**10, 0) is None


@given(st.text(max_size=200))
def test_any_text_is_an_address_or_none(text: str) -> None:
    host = host_of_address(text)

    assert host is None or host


@given(
    kind=st.sampled_from(["pvc", "node-path", "oci", "s3"]),
    uri=st.text(max_size=80),
    endpoint=st.text(max_size=80),
    folder=st.text(max_size=80),
)
def test_any_text_is_a_source_or_names_a_field(
    kind: str, uri: str, endpoint: str, folder: str
) -> None:
    problem = source_problem(kind, uri, endpoint, folder)

    assert problem is None or problem[0] in {"uri", "endpoint", "node_folder"}
