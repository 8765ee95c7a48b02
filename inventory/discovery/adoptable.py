"""Engines that run in a cluster already, as objects there describe them; reading only, no I/O.

Three kinds of objects speak of them: an InferencePool selects Pods by labels and names their ports;
an LLMInferenceService of KServe says its model and where it answers; EndpointSlices list addresses,
of which those count that carry a label of a serving stack. What Consort made itself is left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from inventory.discovery.slices import mapping, quantity, sequence, text

POOL, SERVICE, SLICES = "InferencePool", "LLMInferenceService", "EndpointSlice"
SERVING_DOMAINS = ("llm-d.ai", "serving.kserve.io", "inference.networking.k8s.io")
"""Domains of labels that serving stacks put on the Services of their engines."""
MOST_ENDPOINTS = 256
MOST_OBJECTS = 200
_OURS = ("app.kubernetes.io/managed-by", "consort")
_MODEL_LABELS = ("llm-d.ai/model", "serving.kserve.io/model")
_ROLES = {"prefill": "prefill", "decode": "decode", "prefill-decode": "both", "both": "both"}


@dataclass(frozen=True, slots=True)
class AdoptableEndpoint:
    """One address of an engine."""

    url: str
    """http://ip:port."""
    node: str
    """Name of the Node object; empty if the source does not say."""
    pod: str
    ready: bool | None
    """None: the source does not say."""
    role: str = ""
    """prefill, decode or both; empty if no label says."""


@dataclass(frozen=True, slots=True)
class Adoptable:
    """One object that speaks of engines."""

    kind: str
    api_version: str
    namespace: str
    name: str
    model: str
    """As a label or the object says; empty if neither does."""
    picker: str
    """Service of the endpoint picker of an InferencePool; empty if there is none."""
    endpoints: tuple[AdoptableEndpoint, ...]
    note: str = ""
    """Why there are no endpoints, as a code: selector, ports, no-pods or address-only."""

    def as_json(self) -> dict[str, Any]:
        """Plain values for a JSON column."""
        return asdict(self)


def selector_of(pool: Any) -> str:
    """The label selector of an InferencePool as the API writes it; empty if it has none."""
    spec = mapping(mapping(pool).get("spec"))
    selector = mapping(spec.get("selector"))
    labels = mapping(selector.get("matchLabels")) or {
        key: value for key, value in selector.items() if isinstance(value, str)
    }
    pairs = [f"{key}={value}" for key, value in sorted(labels.items()) if isinstance(value, str)]
    return ",".join(pairs)


def read_pool(pool: Any, pods: Iterable[Any]) -> Adoptable | None:
    """An InferencePool with the addresses of its Pods; None if it is ours or has no name."""
    found = _named(pool, POOL)
    if found is None:
        return None
    spec = mapping(mapping(pool).get("spec"))
    ports = _ports(spec)
    endpoints = [
        endpoint
        for pod in map(mapping, pods)
        for port in ports
        if (endpoint := _of_pod(pod, port)) is not None
    ][:MOST_ENDPOINTS]
    note = "" if endpoints else ("ports" if not ports else "no-pods")
    model = next((name for pod in pods if (name := _model(_labels(pod)))), _model(_labels(pool)))
    return Adoptable(
        *found,
        model=model,
        picker=_picker(spec),
        endpoints=tuple(endpoints),
        note=note if selector_of(pool) else "selector",
    )


def read_service(service: Any) -> Adoptable | None:
    """An LLMInferenceService: its model, and no addresses, since those are its InferencePool's."""
    found = _named(service, SERVICE)
    if found is None:
        return None
    model = mapping(mapping(mapping(service).get("spec")).get("model"))
    name = text(model.get("name")) or text(model.get("uri"))
    return Adoptable(*found, model=name, picker="", endpoints=(), note="address-only")


def read_slices(slices: Iterable[Any]) -> list[Adoptable]:
    """EndpointSlices with a label of a serving stack, those of one Service together."""
    by_service: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for each in map(mapping, slices):
        labels = _labels(each)
        service = text(labels.get("kubernetes.io/service-name"))
        if service and _is_serving(labels) and labels.get(_OURS[0]) != _OURS[1]:
            by_service.setdefault((_namespace(each), service), []).append(each)
    return [
        Adoptable(
            SLICES, "discovery.k8s.io/v1", namespace, service,
            model=next((name for one in members if (name := _model(_labels(one)))), ""),
            picker="",
            endpoints=_unique(endpoint for one in members for endpoint in _of_slice(one)),
        )
        for (namespace, service), members in sorted(by_service.items())
    ]  # fmt: skip


def _named(item: Any, kind: str) -> tuple[str, str, str, str] | None:
    metadata = mapping(mapping(item).get("metadata"))
    name = text(metadata.get("name"))
    if not name or _labels(item).get(_OURS[0]) == _OURS[1]:
        return None
    return kind, text(mapping(item).get("apiVersion")), _namespace(item), name


def _ports(spec: Mapping[str, Any]) -> list[int]:
    """`targetPorts` of v1, or the single number of the versions before it."""
    numbers = [mapping(each).get("number") for each in sequence(spec.get("targetPorts"))]
    ports = [quantity(number) for number in [*numbers, spec.get("targetPortNumber")]]
    return [port for port in ports if port is not None and 0 < port < 65536][:8]


def _picker(spec: Mapping[str, Any]) -> str:
    reference = mapping(spec.get("endpointPickerRef") or spec.get("extensionRef"))
    return text(reference.get("name"))


def _of_pod(pod: Mapping[str, Any], port: int) -> AdoptableEndpoint | None:
    status = mapping(pod.get("status"))
    address = text(status.get("podIP"))
    if not address:
        return None
    ready = [
        condition.get("status") == "True"
        for condition in map(mapping, sequence(status.get("conditions")))
        if condition.get("type") == "Ready"
    ]
    return AdoptableEndpoint(
        url=_url(address, port),
        node=text(mapping(pod.get("spec")).get("nodeName"), most=253),
        pod=text(mapping(pod.get("metadata")).get("name"), most=253),
        ready=ready[0] if ready else None,
        role=_role(_labels(pod)),
    )


def _of_slice(item: Mapping[str, Any]) -> list[AdoptableEndpoint]:
    ports = [quantity(mapping(port).get("port")) for port in sequence(item.get("ports"))]
    found = []
    for each in map(mapping, sequence(item.get("endpoints"))):
        ready = mapping(each.get("conditions")).get("ready")
        for address in sequence(each.get("addresses"))[:1]:
            found += [
                AdoptableEndpoint(
                    url=_url(text(address), port),
                    node=text(each.get("nodeName"), most=253),
                    pod=text(mapping(each.get("targetRef")).get("name"), most=253),
                    ready=ready if isinstance(ready, bool) else None,
                    role=_role(_labels(item)),
                )
                for port in ports[:1]
                if port and text(address)
            ]
    return found


def _unique(endpoints: Iterable[AdoptableEndpoint]) -> tuple[AdoptableEndpoint, ...]:
    by_url = {endpoint.url: endpoint for endpoint in endpoints}
    return tuple(by_url[url] for url in sorted(by_url))[:MOST_ENDPOINTS]


def _url(address: str, port: int) -> str:
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def _is_serving(labels: Mapping[str, Any]) -> bool:
    return any(isinstance(key, str) and key.startswith(SERVING_DOMAINS) for key in labels)


def _role(labels: Mapping[str, Any]) -> str:
    return _ROLES.get(text(labels.get("llm-d.ai/role")), "")


def _model(labels: Mapping[str, Any]) -> str:
    return next((name for key in _MODEL_LABELS if (name := text(labels.get(key)))), "")


def _labels(item: Any) -> Mapping[str, Any]:
    return mapping(mapping(mapping(item).get("metadata")).get("labels"))


def _namespace(item: Any) -> str:
    return text(mapping(mapping(item).get("metadata")).get("namespace"))


def shown(found: Sequence[Adoptable]) -> list[dict[str, Any]]:
    """Plain values in the order of namespace, kind and name, at most MOST_OBJECTS."""
    ordered = sorted(found, key=lambda each: (each.namespace, each.kind, each.name))
    return [each.as_json() for each in ordered[:MOST_OBJECTS]]
