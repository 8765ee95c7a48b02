"""Engines and pickers as clusters."""

from collections.abc import Iterable
from typing import Any

from deploy.envoy.filters import LB, SERVED, Config
from deploy.envoy.wiring import Address, Wiring, address_of
from routing.servers.faces.carrying import DESTINATION

_POLICIES = "envoy.load_balancing_policies"
_TYPE = "type.googleapis.com/envoy.extensions.load_balancing_policies"
_HTTP = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
MOST = 100_000
"""The default of 1,024 lets the 1,025th stream wait."""


CHOSEN, ANY = "engines", "any-engine"


def engines(wiring: Wiring) -> list[Config]:
    """All endpoints, for those that a picker chose; and once more, where no picker may choose."""
    found = [_engines(wiring, CHOSEN, _chosen_only())]
    if wiring.fails_open:
        found.append(_engines(wiring, ANY, _policy("round_robin", "RoundRobin")))
    return found


def _engines(wiring: Wiring, name: str, policy: Config) -> Config:
    hosts: dict[Address, str] = {}
    for endpoint in wiring.endpoints:
        # Ranks that share an address are one host, in service as long as one of them is.
        health = "DRAINING" if endpoint.state == "draining" else "HEALTHY"
        address = address_of(endpoint)
        hosts[address] = health if hosts.get(address) != "HEALTHY" else "HEALTHY"
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "2s",
        "circuit_breakers": _breakers(),
        "typed_extension_protocol_options": _protocol({"http_protocol_options": {}}),
        "load_balancing_policy": {"policies": [policy]},
        "load_assignment": _assignment(
            name, (_host(address) | {"health_status": one} for address, one in hosts.items())
        ),
    }


def pickers(wiring: Wiring) -> Config:
    """One host for each process, taken out of turn while nobody listens there."""
    is_grpc = wiring.face == "ext_proc"
    protocol = "http2_protocol_options" if is_grpc else "http_protocol_options"
    return {
        "name": "picker",
        "type": "STATIC",
        "connect_timeout": "1s",
        "lb_policy": "LEAST_REQUEST",
        "circuit_breakers": _breakers(),
        "typed_extension_protocol_options": _protocol({protocol: {}}),
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
        "health_checks": [
            {
                "timeout": "1s",
                "interval": "1s",
                "no_traffic_interval": "1s",
                "unhealthy_threshold": 1,
                "healthy_threshold": 1,
                "tcp_health_check": {},
            }
        ],
        "load_assignment": _assignment("picker", (_host(one) for one in wiring.pickers)),
    } | _secured(wiring)


def _secured(wiring: Wiring) -> Config:
    """TLS to the pickers; without authorities it hides bytes and proves nothing."""
    if not wiring.picker_tls:
        return {}
    common: Config = {
        "alpn_protocols": ["h2"],
        "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
    }
    if wiring.picker_ca:
        common["validation_context"] = {"trusted_ca": {"filename": wiring.picker_ca}} | _named(
            wiring
        )
    context: Config = {"@type": _TLS, "common_tls_context": common}
    if wiring.picker_name:
        context["sni"] = wiring.picker_name
    return {"transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": context}}


def _named(wiring: Wiring) -> Config:
    if not wiring.picker_name:
        return {}
    name = {"san_type": "DNS", "matcher": {"exact": wiring.picker_name}}
    return {"match_typed_subject_alt_names": [name]}


def _breakers() -> Config:
    most = {"max_connections": MOST, "max_pending_requests": MOST, "max_requests": MOST}
    return {"thresholds": [most]}


def _protocol(options: Config) -> Config:
    return {
        _HTTP: {
            "@type": f"type.googleapis.com/{_HTTP}",
            "explicit_http_config": options,
        }
    }


def _chosen_only() -> Config:
    """The header's list in order, as far as its hosts are in the cluster; then nobody.

    Any other endpoint may be in another jurisdiction or have another model. Envoy asks for a policy
    of last resort: this one looks for hosts with metadata that none has.
    """
    nobody = _policy(
        "subset",
        "Subset",
        fallback_policy="NO_FALLBACK",
        subset_selectors=[{"keys": ["nobody"]}],
        subset_lb_policy={"policies": [_policy("round_robin", "RoundRobin")]},
    )
    return _policy(
        "override_host",
        "OverrideHost",
        override_host_sources=[{"header": DESTINATION}],
        selected_host_key={"key": LB, "path": [{"key": SERVED}]},
        fallback_policy={"policies": [nobody]},
    )


def _policy(name: str, message: str, **settings: Any) -> Config:
    told = {"@type": f"{_TYPE}.{name}.v3.{message}", **settings}
    return {"typed_extension_config": {"name": f"{_POLICIES}.{name}", "typed_config": told}}


def _assignment(name: str, hosts: Iterable[dict[str, Any]]) -> Config:
    return {"cluster_name": name, "endpoints": [{"lb_endpoints": list(hosts)}]}


def _host(address: Address) -> dict[str, Any]:
    socket = {"address": address.ip, "port_value": address.port}
    return {"endpoint": {"address": {"socket_address": socket}}}
