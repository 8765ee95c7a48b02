"""What belongs to a whole pool: its Service, its disruption budgets, its way in from a Gateway.

InferencePool `inference.networking.k8s.io/v1` (Gateway API Inference Extension 1.6.0), HTTPRoute
`gateway.networking.k8s.io/v1` (Gateway API 1.6.1). The picker is always written: the schema lets it
out, most gateways do not.
"""

from controlplane.serving.renderers import _labels
from controlplane.serving.renderers.base import (
    GatewayReference,
    Manifest,
    PickerReference,
    PoolLayout,
    RenderRefusedError,
)
from inventory.kubernetes import labels

INFERENCE_GROUP = "inference.networking.k8s.io"
NO_LIMIT = "0s"
"""An answer may stream for as long as the engine writes."""


def shared_manifests(layout: PoolLayout) -> list[Manifest]:
    """Service, a disruption budget for each role, and pool and route where a gateway is named.

    Raises RenderRefusedError for a gateway without a picker.
    """
    found = [service(layout), *(_budget(layout, role) for role in _roles(layout))]
    if layout.picker is not None:
        found.append(inference_pool(layout, layout.picker))
    if layout.gateway is not None:
        if layout.picker is None:
            raise RenderRefusedError(
                "picker",
                "A route from a Gateway needs a picker, which chooses an engine for each request. "
                "Set containers.picker, or leave containers.gateway out and let the pool's routers "
                "take the requests.",
            )
        found.append(_route(layout, layout.gateway))
    return found


def service(layout: PoolLayout) -> Manifest:
    """Headless: names resolve to the Pods, and EndpointSlices follow their readiness."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _labels.pool_metadata(layout.pool, layout.namespace, name=pool_name(layout)),
        "spec": {
            "clusterIP": "None",
            "selector": _labels.pool_selector(layout.pool),
            "ports": [
                {"name": "http", "port": port, "targetPort": "http", "protocol": "TCP"}
                for port in _http_ports(layout)
            ],
        },
    }


def inference_pool(layout: PoolLayout, picker: PickerReference) -> Manifest:
    """The pool as gateways know it. Raises RenderRefusedError for more ports than it takes."""
    ports = _http_ports(layout)
    if len(ports) > 1:
        raise RenderRefusedError(
            "ports.http",
            f"The pool's engines listen on {len(ports)} ports; in an InferencePool each port of "
            "each Pod is an endpoint of its own, so all engines must use one.",
        )
    return {
        "apiVersion": f"{INFERENCE_GROUP}/v1",
        "kind": "InferencePool",
        "metadata": _labels.pool_metadata(layout.pool, layout.namespace, name=pool_name(layout)),
        "spec": {
            "selector": {"matchLabels": _labels.pool_selector(layout.pool)},
            "targetPorts": [{"number": port} for port in ports],
            "appProtocol": "http",
            "endpointPickerRef": {
                "group": "",
                "kind": "Service",
                "name": picker.name,
                "port": {"number": picker.port},
                "failureMode": picker.failure_mode,
            },
        },
    }


def pool_name(layout: PoolLayout) -> str:
    """Name of the objects of the whole pool."""
    return labels.object_name(layout.pool)


def _route(layout: PoolLayout, gateway: GatewayReference) -> Manifest:
    parent = {
        "group": "gateway.networking.k8s.io",
        "kind": "Gateway",
        "name": gateway.name,
        **({"namespace": gateway.namespace} if gateway.namespace else {}),
    }
    backend = {
        "group": INFERENCE_GROUP,
        "kind": "InferencePool",
        "name": pool_name(layout),
        "weight": 1,
    }
    spec: Manifest = {
        "parentRefs": [parent],
        "rules": [
            {
                "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
                "backendRefs": [backend],
                "timeouts": {"request": NO_LIMIT},
            }
        ],
    }
    if gateway.hostnames:
        spec["hostnames"] = list(gateway.hostnames)
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": _labels.pool_metadata(layout.pool, layout.namespace, name=pool_name(layout)),
        "spec": spec,
    }


def _budget(layout: PoolLayout, role: str) -> Manifest:
    """One engine of a role at a time leaves for maintenance; one that is not ready may always."""
    name = labels.object_name(f"{layout.pool}-{role}")
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _labels.pool_metadata(layout.pool, layout.namespace, name=name),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": _labels.pool_selector(layout.pool, role)},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def _roles(layout: PoolLayout) -> list[str]:
    return sorted({group.role for group in layout.groups})


def _http_ports(layout: PoolLayout) -> list[int]:
    return sorted({group.ports.http for group in layout.groups}) or [8000]
