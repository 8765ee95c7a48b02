"""The port of the endpoint-picker protocol, and the port of its health."""

from routing.servers.faces.ext_proc.health import CHECK, HealthCheck
from routing.servers.faces.ext_proc.stream import Face, Stream
from routing.servers.faces.http2.server import Method, RpcServer
from routing.servers.faces.http2.tls import Certificate
from routing.servers.state import RouterState

PROCESS = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"


def picker_server(face: Face, *, certificate: Certificate | None = None) -> RpcServer:
    """The picker, not yet listening; it answers for its health as well."""
    return RpcServer(
        {PROCESS: lambda wire: Stream(face, wire), CHECK: _health(face.state)},
        certificate=certificate,
    )


def health_server(state: RouterState) -> RpcServer:
    """Health alone."""
    return RpcServer({CHECK: _health(state)})


def _health(state: RouterState) -> Method:
    return lambda wire: HealthCheck(state, wire)
