"""gRPC health of a picker, as gateways and Kubernetes ask for it."""

from google.protobuf.message import DecodeError

from routing.servers.faces.ext_proc.messages_pb2 import HealthRequest, HealthResponse
from routing.servers.faces.http2.streams import INVALID_ARGUMENT, RpcStream
from routing.servers.state import RouterState

CHECK = "/grpc.health.v1.Health/Check"
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3
LIVENESS = "liveness"
READINESS = ("readiness", "envoy.service.ext_proc.v3.ExternalProcessor", "")


class HealthCheck:
    """One question."""

    def __init__(self, state: RouterState, wire: RpcStream) -> None:
        self._state = state
        self._wire = wire

    def taken(self, raw: bytes) -> None:
        """Answer it."""
        try:
            service = HealthRequest.FromString(raw).service
        except DecodeError:
            self._wire.end(INVALID_ARGUMENT, "The question cannot be read.")
            return
        status = status_of(self._state, service)
        self._wire.send(HealthResponse(status=status).SerializeToString())
        self._wire.end()

    def closed(self) -> None:
        """Nothing more is asked."""
        self._wire.end(INVALID_ARGUMENT, "No question came.")


def status_of(state: RouterState, service: str) -> int:
    """Alive while it answers; ready while some pool has endpoints and nothing is shutting down."""
    if service == LIVENESS:
        return SERVING
    if service not in READINESS:
        return SERVICE_UNKNOWN
    has_endpoints = any(pool.endpoints for pool in state.directory.pools.values())
    return SERVING if has_endpoints and not state.is_draining else NOT_SERVING
