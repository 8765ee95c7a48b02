"""Kinds that Consort can use, what brings each into a cluster, and what it is for. Pure.

Source: the documentation of Kubernetes 1.36 for its own groups, and of the named projects for
theirs, in the versions named.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from inventory.kubernetes.sentences import gettext_noop

_ = gettext_noop

Kind = tuple[str, str]
"""apiVersion and kind."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One kind."""

    api_version: str
    kind: str
    use: str
    """What it is for; pages translate it by its text."""
    brings: str
    """What to install, by its own name; empty: Kubernetes itself from the version in `since`."""
    since: str = ""
    needed: bool = False
    """Without it no engine runs; the others widen what is possible."""

    @property
    def pair(self) -> Kind:
        """As discovery names it."""
        return self.api_version, self.kind


_GATEWAY = "Gateway API 1.6.1"
_INFERENCE = "Gateway API Inference Extension 1.6.0"
_LWS = "LeaderWorkerSet 0.10.0"
_ROUTER = "llm-d Router"

_ENGINES = _("every engine")
_DEVICES = _("devices by name instead of by number")

WANTED = (
    Wanted("v1", "Node", _ENGINES, "", needed=True),
    Wanted("v1", "Pod", _ENGINES, "", needed=True),
    Wanted("v1", "Service", _ENGINES, "", needed=True),
    Wanted("apps/v1", "Deployment", _ENGINES, "", needed=True),
    Wanted("discovery.k8s.io/v1", "EndpointSlice", _ENGINES, "", since="1.21", needed=True),
    Wanted(
        "policy/v1", "PodDisruptionBudget", _("engines stay when nodes are emptied"), "",
        since="1.21",
    ),
    Wanted("resource.k8s.io/v1", "ResourceSlice", _DEVICES, "", since="1.34"),
    Wanted("resource.k8s.io/v1", "ResourceClaimTemplate", _DEVICES, "", since="1.34"),
    Wanted(
        "gateway.networking.k8s.io/v1", "HTTPRoute", _("a gateway in front of routers"), _GATEWAY
    ),
    Wanted(
        "inference.networking.k8s.io/v1", "InferencePool",
        _("pools behind a gateway; taking over pools that exist"), _INFERENCE,
    ),
    Wanted(
        "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", _("an engine over several nodes"), _LWS
    ),
    Wanted(
        "disaggregatedset.x-k8s.io/v1", "DisaggregatedSet",
        _("prefill and decode rolled out as one"), _LWS,
    ),
    Wanted("serving.kserve.io/v1alpha2", "LLMInferenceService", _("pools run by KServe"), "KServe"),
    Wanted("llm-d.ai/v1alpha2", "InferenceObjective", _("priorities of llm-d"), _ROUTER),
    Wanted("llm-d.ai/v1alpha2", "InferenceModelRewrite", _("other model names of llm-d"), _ROUTER),
    Wanted(
        "autoscaling/v2", "HorizontalPodAutoscaler", _("seeing who sets the number of engines"),
        "", since="1.23",
    ),
    Wanted(
        "keda.sh/v1alpha1", "ScaledObject", _("seeing who sets the number of engines"), "KEDA"
    ),
)  # fmt: skip


def found(served: Iterable[Kind]) -> list[list[str]]:
    """Wanted kinds among those served, as JSON keeps them, in the order of `WANTED`."""
    there = frozenset(served)
    return [list(wanted.pair) for wanted in WANTED if wanted.pair in there]


def missing(served: Iterable[Iterable[str]]) -> list[Wanted]:
    """Wanted kinds that are not among those that `found` gave."""
    there = {tuple(pair) for pair in served}
    return [wanted for wanted in WANTED if wanted.pair not in there]
