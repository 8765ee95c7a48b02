"""The kinds that the fake knows, as discovery tells them."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Kind:
    """One resource: where it is served and which subresources it has.

    `family` names the software whose installation brings the kind; "" is Kubernetes itself.
    `versions` are further versions under which the same objects are served.
    `generation`: metadata.generation counts changes of the wish.
    """

    group: str
    version: str
    name: str
    plural: str
    namespaced: bool = True
    status: bool = False
    scale: bool = False
    generation: bool = False
    family: str = ""
    versions: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """`group/version`, or the bare version of the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def custom(self) -> bool:
        """Whether a CRD defines it: no strategic patches, kinds stay in list items."""
        return bool(self.family)

    @property
    def full(self) -> str:
        """The plural with its group, as messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _core(name: str, plural: str, **facts: Any) -> Kind:
    return Kind("", "v1", name, plural, **facts)


def _apps(name: str, plural: str) -> Kind:
    return Kind("apps", "v1", name, plural, status=True, scale=True, generation=True)


def _crd(family: str, group: str, version: str, name: str, **facts: Any) -> Kind:
    plural = facts.pop("plural", f"{name.lower()}s")
    return Kind(group, version, name, plural, status=True, generation=True, family=family, **facts)


GATEWAY, INFERENCE, LLMD = "gateway-api", "inference-extension", "llm-d"
LWS, KSERVE, KEDA = "lws", "kserve", "keda"
FAMILIES = frozenset({GATEWAY, INFERENCE, LLMD, LWS, KSERVE, KEDA})

KINDS: tuple[Kind, ...] = (
    _core("Namespace", "namespaces", namespaced=False, status=True),
    _core("Node", "nodes", namespaced=False, status=True),
    _core("Pod", "pods", status=True, generation=True),
    _core("Service", "services", status=True),
    _core("ConfigMap", "configmaps"),
    _core("Secret", "secrets"),
    _core("PersistentVolumeClaim", "persistentvolumeclaims", status=True),
    _core("Event", "events"),
    _core("ServiceAccount", "serviceaccounts"),
    _core("ResourceQuota", "resourcequotas", status=True),
    Kind("coordination.k8s.io", "v1", "Lease", "leases"),
    Kind("batch", "v1", "Job", "jobs", status=True, generation=True),
    Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", generation=True),
    _apps("Deployment", "deployments"),
    _apps("StatefulSet", "statefulsets"),
    _apps("ReplicaSet", "replicasets"),
    Kind(
        "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", status=True, generation=True
    ),
    Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", status=True),
    Kind("rbac.authorization.k8s.io", "v1", "Role", "roles"),
    Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
    Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", generation=True),
    Kind(
        "resource.k8s.io",
        "v1",
        "ResourceSlice",
        "resourceslices",
        namespaced=False,
        generation=True,
    ),
    Kind(
        "resource.k8s.io", "v1", "DeviceClass", "deviceclasses", namespaced=False, generation=True
    ),
    Kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", status=True),
    Kind("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates"),
    _crd(
        GATEWAY,
        "gateway.networking.k8s.io",
        "v1",
        "GatewayClass",
        plural="gatewayclasses",
        namespaced=False,
        versions=("v1beta1",),
    ),
    _crd(GATEWAY, "gateway.networking.k8s.io", "v1", "Gateway", versions=("v1beta1",)),
    _crd(GATEWAY, "gateway.networking.k8s.io", "v1", "HTTPRoute", versions=("v1beta1",)),
    _crd(INFERENCE, "inference.networking.k8s.io", "v1", "InferencePool"),
    _crd(INFERENCE, "inference.networking.x-k8s.io", "v1alpha1", "InferencePoolImport"),
    _crd(INFERENCE, "inference.networking.x-k8s.io", "v1alpha2", "InferenceObjective"),
    _crd(INFERENCE, "inference.networking.x-k8s.io", "v1alpha2", "InferenceModelRewrite"),
    _crd(LLMD, "llm-d.ai", "v1alpha2", "InferenceObjective"),
    _crd(LLMD, "llm-d.ai", "v1alpha2", "InferenceModelRewrite"),
    _crd(LWS, "leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", scale=True),
    _crd(LWS, "disaggregatedset.x-k8s.io", "v1", "DisaggregatedSet"),
    _crd(KSERVE, "serving.kserve.io", "v1alpha2", "LLMInferenceService"),
    _crd(KEDA, "keda.sh", "v1alpha1", "ScaledObject"),
)


class Catalogue:
    """The kinds that one server has installed."""

    def __init__(self, missing: frozenset[str] = frozenset()) -> None:
        self.missing = set(missing)

    def installed(self) -> list[Kind]:
        """Kinds whose family is not switched off and that are not switched off by name."""
        return [kind for kind in KINDS if not {kind.family, kind.name, kind.group} & self.missing]

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind served under this path."""
        for kind in self.installed():
            if (kind.group, kind.plural) == (group, plural) and version in (
                kind.version,
                *kind.versions,
            ):
                return kind
        return None

    def groups(self) -> dict[str, list[str]]:
        """Versions per group, the preferred first."""
        found: dict[str, list[str]] = {}
        for kind in self.installed():
            known = found.setdefault(kind.group, [])
            known.extend(v for v in (kind.version, *kind.versions) if v not in known)
        return found


BY_NAME = {(kind.api_version, kind.name): kind for kind in KINDS}


def kind_of(api_version: str, name: str) -> Kind:
    """The kind of these two names; KeyError when the fake does not know it."""
    return BY_NAME[api_version, name]
