"""A bootstrap for Envoy: a listener, the filter that asks the picker, two clusters.

Written for Envoy 1.40; `envoy --mode validate` checks it.
"""

from typing import Any

import yaml

from deploy.envoy import clusters, filters
from deploy.envoy.filters import Config
from deploy.envoy.wiring import Address, Wiring
from routing.servers.faces import authz
from routing.servers.faces.carrying import DESTINATION, PREFILLER, RANK

IDLE = "3600s"
"""A long prompt may be computed for minutes before the first byte of its answer."""
STRIPPED = (
    DESTINATION,
    f"{DESTINATION}-subset",
    f"{DESTINATION}-scores",
    filters.SERVED,
    PREFILLER,
    "x-encoder-hosts-ports",
    "x-data-parallel-host-port",
    RANK,
    "x-kv-cache-source-host-port",
)
"""What only a picker may say; taken off a client's request before any filter sees it."""
KEPT = frozenset({"content-type", "content-encoding", "x-request-id", "traceparent", "tracestate"})
"""Of what a decision reads, the headers that engines may read too."""

_CORE = "type.googleapis.com/envoy.extensions"


def bootstrap(wiring: Wiring) -> str:
    """YAML of a bootstrap. Raises WiringError for parts that do not work together."""
    wiring.check()
    config: Config = {}
    if wiring.admin is not None:
        config["admin"] = {"address": _socket(wiring.admin)}
    config["static_resources"] = {
        "listeners": [_listener(wiring)],
        "clusters": [*clusters.engines(wiring), clusters.pickers(wiring)],
    }
    # Reserves nothing for hot restart and never reloads by itself: a new file is a new process.
    return yaml.safe_dump(config, sort_keys=False, width=100)


def _listener(wiring: Wiring) -> Config:
    return {
        "name": "inference",
        "address": _socket(wiring.listen),
        # A longer body is answered with 413 where it has to be held whole.
        "per_connection_buffer_limit_bytes": wiring.body_bytes,
        "filter_chains": [{"filters": [_connection_manager(wiring)]}],
    }


def _connection_manager(wiring: Wiring) -> Config:
    name = "envoy.filters.network.http_connection_manager"
    return {
        "name": name,
        "typed_config": {
            "@type": f"{_CORE}.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "inference",
            "use_remote_address": True,
            # Records name a request as its client does; engines get a name that no other has.
            "preserve_external_request_id": True,
            "normalize_path": True,
            "merge_slashes": True,
            "path_with_escaped_slashes_action": "REJECT_REQUEST",
            "request_headers_timeout": "30s",
            "request_timeout": "120s",
            "stream_idle_timeout": IDLE,
            "early_header_mutation_extensions": [_stripping()],
            "access_log": [_access_log()],
            **_own_answers(wiring),
            "http_filters": [filters.picking(wiring), _router()],
            "route_config": {"name": "inference", "virtual_hosts": [_virtual_host(wiring)]},
        },
    }


def _own_answers(wiring: Wiring) -> Config:
    """Statuses of refusals as clients know them; see `authz.STANDS_FOR_IT`."""
    if wiring.face != "ext_authz":
        return {}
    value = {"default_value": authz.STANDS_FOR_IT, "runtime_key": "consort.no_capacity"}
    stands_for_it = {"status_code_filter": {"comparison": {"op": "EQ", "value": value}}}
    mapper = {"filter": stands_for_it, "status_code": authz.NO_CAPACITY}
    return {"local_reply_config": {"mappers": [mapper]}}


def _stripping() -> Config:
    return {
        "name": "envoy.http.early_header_mutation.header_mutation",
        "typed_config": {
            "@type": f"{_CORE}.http.early_header_mutation.header_mutation.v3.HeaderMutation",
            "mutations": [{"remove": name} for name in STRIPPED],
        },
    }


def _access_log() -> Config:
    return {
        "name": "envoy.access_loggers.stdout",
        "typed_config": {
            "@type": f"{_CORE}.access_loggers.stream.v3.StdoutAccessLog",
            "log_format": {"json_format": LOGGED},
        },
    }


LOGGED: dict[str, str] = {
    "time": "%START_TIME%",
    "method": "%REQ(:METHOD)%",
    "path": "%REQ(:PATH)%",
    "status": "%RESPONSE_CODE%",
    "why": "%RESPONSE_CODE_DETAILS%",
    "flags": "%RESPONSE_FLAGS%",
    "milliseconds": "%DURATION%",
    "request_bytes": "%BYTES_RECEIVED%",
    "answer_bytes": "%BYTES_SENT%",
    "request": "%REQ(X-REQUEST-ID)%",
    "decision": "%RESP(X-CONSORT-DECISION-ID)%",
    "picked": f"%REQ({DESTINATION.upper()})%",
    "served": "%UPSTREAM_HOST%",
}
"""Fields of the access log; no key and no body."""


def _router() -> Config:
    return {
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": f"{_CORE}.filters.http.router.v3.Router"},
    }


def _virtual_host(wiring: Wiring) -> Config:
    """Every path: the picker refuses what is not for users."""
    secret = {"authorization", "x-api-key", *authz.READ_HEADERS} - KEPT
    return {
        "name": "inference",
        "domains": ["*"],
        # A key and control headers of a client are not an engine's business.
        "request_headers_to_remove": sorted(secret),
        "routes": _routes(wiring),
    }


def _routes(wiring: Wiring) -> list[Config]:
    """What a picker let through has its header; the rest is there where open failure lets it."""
    if not wiring.fails_open:
        return [_route(clusters.CHOSEN)]
    is_chosen = {"name": DESTINATION, "present_match": True}
    return [_route(clusters.CHOSEN, headers=[is_chosen]), _route(clusters.ANY)]


def _route(cluster: str, **match: Any) -> Config:
    return {
        "match": {"prefix": "/", **match},
        "route": {
            "cluster": cluster,
            # The default of 15 s would cut streams.
            "timeout": "0s",
            "idle_timeout": IDLE,
            # Nothing was begun there: the next of the picker's list is tried.
            "retry_policy": {"retry_on": "connect-failure,refused-stream", "num_retries": 2},
        },
    }


def _socket(address: Address) -> Config:
    return {"socket_address": {"address": address.ip, "port_value": address.port}}
