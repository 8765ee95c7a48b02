"""The filter that asks the picker, one for each face."""

from typing import Any

from deploy.envoy.wiring import Wiring
from routing.servers.faces import authz
from routing.servers.faces.carrying import DESTINATION

Config = dict[str, Any]

SERVED = f"{DESTINATION}-served"
LB, SUBSET = "envoy.lb", "envoy.lb.subset_hint"
"""Namespaces of metadata that an endpoint picker reads and writes."""
_FILTERS = "type.googleapis.com/envoy.extensions.filters.http"


def picking(wiring: Wiring) -> Config:
    """The HTTP filter of a wiring's face."""
    return _ext_authz(wiring) if wiring.face == "ext_authz" else _ext_proc(wiring)


def _ext_authz(wiring: Wiring) -> Config:
    return {
        "name": "envoy.filters.http.ext_authz",
        "typed_config": {
            "@type": f"{_FILTERS}.ext_authz.v3.ExtAuthz",
            "transport_api_version": "V3",
            "failure_mode_allow": wiring.fails_open,
            # What a picker chose has a route of its own there.
            **({"clear_route_cache": True} if wiring.fails_open else {}),
            # Else a picker that is down would look like a refusal: 403.
            "status_on_error": {"code": "ServiceUnavailable"},
            "with_request_body": {
                "max_request_bytes": wiring.body_bytes,
                "allow_partial_message": False,
            },
            "allowed_headers": _exact(authz.READ_HEADERS),
            "http_service": {
                "server_uri": {
                    "uri": "http://picker",
                    "cluster": "picker",
                    "timeout": f"{wiring.picker_seconds:g}s",
                },
                "path_prefix": authz.PREFIX,
                "authorization_response": {
                    "allowed_upstream_headers": _exact(authz.REQUEST_HEADERS),
                    "allowed_client_headers": _exact(authz.REFUSAL_HEADERS),
                    "allowed_client_headers_on_success": _exact(authz.CLIENT_HEADERS),
                },
            },
        },
    }


def _exact(names: tuple[str, ...]) -> Config:
    return {"patterns": [{"exact": name} for name in names]}


def _ext_proc(wiring: Wiring) -> Config:
    is_duplex = wiring.body_mode == "full-duplex"
    answers = "NONE"
    if wiring.sees_answers:
        answers = "FULL_DUPLEX_STREAMED" if is_duplex else "STREAMED"
    return {
        "name": "envoy.filters.http.ext_proc",
        "typed_config": {
            "@type": f"{_FILTERS}.ext_proc.v3.ExternalProcessor",
            # The stream of a request may last as long as its answer.
            "grpc_service": {"envoy_grpc": {"cluster_name": "picker"}, "timeout": "0s"},
            "failure_mode_allow": wiring.fails_open,
            "message_timeout": f"{wiring.picker_seconds:g}s",
            "processing_mode": {
                "request_header_mode": "SEND",
                "request_body_mode": "FULL_DUPLEX_STREAMED" if is_duplex else "BUFFERED",
                "request_trailer_mode": "SEND" if is_duplex else "SKIP",
                "response_header_mode": "SEND",
                "response_body_mode": answers,
                "response_trailer_mode": "SEND" if answers == "FULL_DUPLEX_STREAMED" else "SKIP",
            },
            "metadata_options": {
                "forwarding_namespaces": {"untyped": [LB, SUBSET]},
                "receiving_namespaces": {"untyped": [LB]},
            },
        },
    }
