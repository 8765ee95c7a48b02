"""Bootstraps for Envoy, word for word, and Envoy's own opinion of them."""

import subprocess
from typing import Any

import pytest
import yaml

from deploy.envoy.bootstrap import STRIPPED, bootstrap
from deploy.envoy.wiring import Address
from tests.deploy.envoy.wirings import GOLDEN, KEPT, pool, wiring
from tests.e2e.envoy.binary import envoy_binary

by_name = pytest.mark.parametrize("name", sorted(KEPT))


def rendered(**changes: Any) -> dict[str, Any]:
    return yaml.safe_load(bootstrap(wiring(**changes)))["static_resources"]


def manager(**changes: Any) -> dict[str, Any]:
    (listener,) = rendered(**changes)["listeners"]
    return listener["filter_chains"][0]["filters"][0]["typed_config"]


@by_name
def test_it_is_the_golden_file(name: str) -> None:
    """To accept a change: python -m tests.deploy.envoy.write_golden."""
    assert bootstrap(wiring(**KEPT[name])) == (GOLDEN / f"{name}.yaml").read_text()


def test_there_is_no_golden_file_too_many() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.yaml")) == sorted(KEPT)


@pytest.mark.processes
@pytest.mark.xdist_group("envoy")
@by_name
def test_envoy_takes_it(name: str) -> None:
    command = [envoy_binary(), "--mode", "validate", "-l", "error", "-c"]
    checked = subprocess.run(
        [*command, GOLDEN / f"{name}.yaml"], capture_output=True, text=True, timeout=30, check=False
    )

    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("face", ["ext_authz", "ext_proc"])
def test_no_client_names_a_destination(face: str) -> None:
    config = manager(face=face)

    (stripping,) = config["early_header_mutation_extensions"]
    assert stripping["typed_config"]["mutations"] == [{"remove": name} for name in STRIPPED]
    assert "x-gateway-destination-endpoint" in STRIPPED


@pytest.mark.parametrize("face", ["ext_authz", "ext_proc"])
def test_no_engine_sees_a_key(face: str) -> None:
    (host,) = manager(face=face)["route_config"]["virtual_hosts"]

    assert {"authorization", "x-api-key", "x-session-id"} <= set(host["request_headers_to_remove"])
    assert "x-request-id" not in host["request_headers_to_remove"]


def test_a_picker_has_longer_than_the_longest_queue() -> None:
    bands = [{"priority": 5, "queue_seconds": 90.0}]
    patient = pool(admission={"queue_seconds": 30.0, "bands": bands})

    asked = manager(documents=[patient])["http_filters"][0]["typed_config"]

    assert asked["http_service"]["server_uri"]["timeout"] == "95s"


def test_prefill_ends_get_no_request_and_ranks_of_one_address_are_one_host() -> None:
    roles = {"p": "prefill", "d": "decode"}
    engines, _ = rendered(documents=[pool("p", "d", roles=roles)])["clusters"]

    (group,) = engines["load_assignment"]["endpoints"]
    addresses = [one["endpoint"]["address"]["socket_address"] for one in group["lb_endpoints"]]
    assert addresses == [{"address": "127.0.0.1", "port_value": 8001}]


def test_ipv6_is_written_without_brackets() -> None:
    _, pickers = rendered(pickers=[Address.of("[fd00::5]:9001")])["clusters"]

    (group,) = pickers["load_assignment"]["endpoints"]
    address = group["lb_endpoints"][0]["endpoint"]["address"]["socket_address"]
    assert address == {"address": "fd00::5", "port_value": 9001}


def test_pickers_are_believed_unless_authorities_and_a_name_are_given() -> None:
    def context(**changes: Any) -> dict[str, Any]:
        _, pickers = rendered(face="ext_proc", picker_tls=True, **changes)["clusters"]
        return pickers["transport_socket"]["typed_config"]

    anybody = context()
    known = context(picker_ca="/etc/ca.crt", picker_name="picker.test")

    assert anybody["common_tls_context"]["alpn_protocols"] == ["h2"]
    assert "validation_context" not in anybody["common_tls_context"]
    assert known["sni"] == "picker.test"
    assert known["common_tls_context"]["validation_context"] == {
        "trusted_ca": {"filename": "/etc/ca.crt"},
        "match_typed_subject_alt_names": [{"san_type": "DNS", "matcher": {"exact": "picker.test"}}],
    }
