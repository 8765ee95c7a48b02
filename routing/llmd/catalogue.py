"""Every plugin type of llm-d Router 0.10: its kind, parameters with defaults, and our counterpart.

A type with a counterpart behaves here as upstream documents it. One without is known by name: its
parameters are checked, kept and written back, and it is reported. `is_open` types are carried
through without a look at their parameters. Experimental types need `--allow-experimental-plugins`
upstream.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

Kind = Literal[
    "filter",
    "scorer",
    "picker",
    "handler",
    "decider",
    "producer",
    "data-layer",
    "admission",
    "flow-control",
    "parser",
    "request-control",
    "other",
]


class PluginSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a type."""

    kind: Kind
    parameters: type[msgspec.Struct] | None
    """Fields by their names on the wire; `None` is not looked at."""
    has_counterpart: bool = False
    is_experimental: bool = False
    note: str = ""
    """What stands for it here, or what differs."""


def known(kind: Kind, note: str = "", /, **fields: Any) -> PluginSpec:
    """A type that is kept; fields are `name=(type, default)` or `name=type` when required."""
    return PluginSpec(kind=kind, parameters=shape(**fields), note=note)


def mapped(kind: Kind, note: str = "", /, **fields: Any) -> PluginSpec:
    """A type with a counterpart."""
    return PluginSpec(kind=kind, parameters=shape(**fields), has_counterpart=True, note=note)


def experimental(spec: PluginSpec) -> PluginSpec:
    """Marks a type as experimental upstream."""
    return msgspec.structs.replace(spec, is_experimental=True)


def is_open(kind: Kind, note: str = "") -> PluginSpec:
    """A type that is carried through."""
    return PluginSpec(kind=kind, parameters=None, note=note)


def shape(**fields: Any) -> type[msgspec.Struct]:
    """A strict struct of parameters; a default that is a list or an object is made for each."""
    parts: list[Any] = []
    for name, given in fields.items():
        if isinstance(given, tuple):
            kind, default = given
            if isinstance(default, (dict, list)) or (
                isinstance(default, type) and issubclass(default, msgspec.Struct)
            ):
                make = default if isinstance(default, type) else type(default)
                default = msgspec.field(default_factory=make)
            parts.append((name, kind, default))
        else:
            parts.append((name, given))
    return msgspec.defstruct(
        "parameters", parts, frozen=True, kw_only=True, forbid_unknown_fields=True
    )


Strings = list[str]
Anything = dict[str, Any]

_SESSION_ID = shape(
    sources=(list[Anything], []),
    evictionTtlSeconds=(float, 300.0),
    evictionSweepSeconds=(float, 10.0),
)
_SESSION_HEADER = shape(header=(str, "x-session-token"))
_SESSION: Mapping[str, Any] = {
    "strategy": (Literal["encoded_endpoint_header", "session_id"], "encoded_endpoint_header"),
    "encodedEndpointHeaderConfig": (_SESSION_HEADER, _SESSION_HEADER),
    "sessionIdConfig": (_SESSION_ID, _SESSION_ID),
    "profileName": (str, ""),
}
_PICKED: Mapping[str, Any] = {"maxNumOfEndpoints": (int, 1)}
_EXPRESSION = shape(
    key=str,
    operator=Literal["In", "NotIn", "Exists", "DoesNotExist"],
    values=(Strings, []),
)
_CONDITION = shape(
    metric=Literal["active-requests", "running-requests", "waiting-queue", "kv-cache-utilization"],
    maxValue=float,
)
_STAGES = shape(decode=(str, "decode"), prefill=(str, "prefill"), encode=(str, "encode"))
_DECIDERS = shape(prefill=(str, ""), encode=(str, ""))

SCHEDULING: dict[str, PluginSpec] = {
    "decode-filter": mapped("filter", "by the role in the pool document"),
    "prefill-filter": mapped("filter", "by the role; endpoints of role 'both' make no pairs here"),
    "encode-filter": known("filter", "there is no encode role"),
    "label-selector-filter": mapped(
        "filter",
        matchLabels=(dict[str, str], {}),
        matchExpressions=(list[_EXPRESSION], []),  # type: ignore[valid-type]
    ),
    "by-label": mapped("filter", label=str, validValues=(Strings, []), allowsNoLabel=(bool, False)),
    "prefix-cache-affinity-filter": mapped(
        "filter",
        affinityThreshold=(float, 0.80),
        explorationProbability=(float, 0.0),
        maxTTFTPenaltyMs=(float, 18_000.0),
        ttftSource=(Literal["prefillThroughput", "latencyPredictor"], "prefillThroughput"),
        peakPrefillThroughput=(float, 15_928.0),
    ),
    "slo-headroom-tier-filter": mapped(
        "filter", "predictions are our learned speeds", epsilonExploreNeg=(float, 0.01)
    ),
    "utilization-filter": experimental(
        known(
            "filter",
            conditions=(list[_CONDITION], []),  # type: ignore[valid-type]
            fallbackOnEmpty=(bool, False),
        )
    ),
    "endpoint-attribute-filter": experimental(
        known(
            "filter",
            attribute=(str, ""),
            producer=(str, ""),
            onMissing=(Literal["Pass", "Fail"], "Fail"),
            fallbackOnEmpty=(bool, False),
            algorithm=(Anything, {}),
        )
    ),
    "topology-affinity-filter": experimental(
        known("filter", minAffinity=(Literal["host", "rack", "zone", "region"], "host"))
    ),
    "session-affinity-filter": experimental(
        mapped("filter", "the router remembers sessions, headers are fixed", **_SESSION)
    ),
    "session-affinity-scorer": experimental(
        mapped("scorer", "the router remembers sessions, headers are fixed", **_SESSION)
    ),
    "queue-scorer": mapped("scorer"),
    "running-requests-size-scorer": mapped("scorer"),
    "kv-cache-utilization-scorer": mapped("scorer"),
    "lora-affinity-scorer": mapped("scorer", "an idle loaded adapter counts as running"),
    "prefix-cache-scorer": mapped(
        "scorer",
        prefixMatchInfoProducerName=(str, ""),
        matchLengthWeight=(float, 0.0),
        matchLengthScaleTokens=(int, 8192),
    ),
    "token-load-scorer": mapped("scorer", queueThresholdTokens=(int, 4_194_304)),
    "active-request-scorer": mapped("scorer", idleThreshold=(int, 0), maxBusyScore=(float, 1.0)),
    "load-aware-scorer": mapped("scorer", threshold=(int, 128)),
    "no-hit-lru-scorer": mapped(
        "scorer",
        lruSize=(int, 1024),
        prefixPluginType=(str, "prefix-cache-scorer"),
        prefixPluginName=(str, "prefix-cache-scorer"),
    ),
    "context-length-aware": mapped(
        "scorer", label=(str, "llm-d.ai/context-length-range"), enableFiltering=(bool, False)
    ),
    "latency-scorer": mapped(
        "scorer",
        "predictions are our learned speeds",
        ttftWeight=(float, 0.8),
        tpotWeight=(float, 0.2),
        headroomSelectionStrategy=(Literal["least", "most"], "least"),
        compositeKVWeight=(float, 1.0),
        compositeQueueWeight=(float, 1.0),
        compositePrefixWeight=(float, 1.0),
    ),
    "endpoint-attribute-scorer": experimental(
        known("scorer", attributeKey=(str, ""), algorithm=(Anything, {}))
    ),
    "header-label-affinity-scorer": experimental(
        known("scorer", headerName=(str, ""), labelKey=(str, ""))
    ),
    "topology-affinity-scorer": experimental(known("scorer", topologyProducerName=(str, ""))),
    "mm-embeddings-cache-scorer": known("scorer", "pictures are a part of the prompt here"),
    "max-score-picker": mapped("picker", **_PICKED),
    "random-picker": mapped("picker", **_PICKED),
    "weighted-random-picker": mapped("picker", **_PICKED),
    "single-profile-handler": mapped("handler"),
    "header-profile-handler": experimental(
        known(
            "handler",
            "the default profile decides",
            headerName=(str, "EPP-Profile"),
            defaultProfile=(str, "decode"),
        )
    ),
    "disagg-profile-handler": mapped(
        "handler",
        "the stage encode is left out",
        stageOrder=(Literal["decode-first", "prefill-first"], "decode-first"),
        profiles=(_STAGES, _STAGES),
        deciders=(_DECIDERS, _DECIDERS),
    ),
    "disagg-headers-handler": mapped(
        "request-control",
        "the router sends both legs itself",
        prefillProfile=(str, "prefill"),
        encodeProfile=(str, "encode"),
    ),
    "data-parallel-profile-handler": known(
        "handler", "ranks are endpoints of their own here", primaryPort=(int, 8000)
    ),
    "prefix-based-pd-decider": mapped("decider", nonCachedTokens=(int, 0), promptTokens=(int, 0)),
    "always-disagg-pd-decider": mapped("decider"),
    "always-disagg-multimodal-decider": known("decider", "there is no encode stage"),
}
