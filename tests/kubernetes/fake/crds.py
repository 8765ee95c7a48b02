"""Schemas of the custom kinds: the fields that Consort sets, their rules and defaults.

A schema is a `Map` of fields; `ANY` takes what comes. Fields of a `Map` that are not named are
unknown: pruned, or refused when the caller is strict, as a structural CRD schema does.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.kubernetes.fake import typed
from tests.kubernetes.fake.errors import cause

Object = dict[str, Any]
Causes = list[dict[str, str]]


@dataclass(frozen=True)
class Anything:
    """Takes every value."""


@dataclass(frozen=True)
class Text:
    """Text, one of `allowed` when there are some."""

    allowed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Whole:
    """A whole number within bounds."""

    least: int = -(2**31)
    most: int = 2**31 - 1


@dataclass(frozen=True)
class Each:
    """A list of at least `least` and at most `most` items."""

    item: Any
    least: int = 0
    most: int = 1024


@dataclass(frozen=True)
class Template:
    """A Pod template, with the fields of the built-in kind."""


@dataclass(frozen=True)
class Map:
    """An object with named fields."""

    fields: dict[str, Any]
    required: tuple[str, ...] = ()
    defaults: dict[str, Any] = field(default_factory=dict)
    rule: Callable[[Object], str | None] | None = None


ANY, TEXT, PORT = Anything(), Text(), Whole(1, 65535)
NAMED = {"group": TEXT, "kind": TEXT, "name": TEXT, "namespace": TEXT}


def _picker_names_its_port(ref: Object) -> str | None:
    if ref.get("kind", "Service") == "Service" and "port" not in ref:
        return "port is required when kind is 'Service' or unspecified (defaults to 'Service')"
    return None


POOL = Map(
    {
        "selector": Map({"matchLabels": ANY}, ("matchLabels",)),
        "targetPorts": Each(Map({"number": PORT}, ("number",)), 1, 8),
        "appProtocol": Text(("http", "kubernetes.io/h2c")),
        "endpointPickerRef": Map(
            NAMED
            | {
                "port": Map({"number": PORT}, ("number",)),
                "failureMode": Text(("FailOpen", "FailClose")),
            },
            ("name",),
            {"group": "", "kind": "Service", "failureMode": "FailClose"},
            _picker_names_its_port,
        ),
    },
    ("selector", "targetPorts"),
)
PARENT = Map(
    NAMED | {"sectionName": TEXT, "port": PORT},
    ("name",),
    {"group": "gateway.networking.k8s.io", "kind": "Gateway"},
)
BACKEND = Map(
    NAMED | {"port": PORT, "weight": Whole(0, 1_000_000), "filters": ANY},
    ("name",),
    {"group": "", "kind": "Service", "weight": 1},
)
ROUTE = Map(
    {
        "parentRefs": Each(PARENT, most=32),
        "hostnames": Each(TEXT, most=16),
        "rules": Each(
            Map(
                {
                    "name": TEXT,
                    "matches": ANY,
                    "filters": ANY,
                    "retry": ANY,
                    "sessionPersistence": ANY,
                    "backendRefs": Each(BACKEND, most=16),
                    "timeouts": Map({"request": TEXT, "backendRequest": TEXT}),
                },
                defaults={"matches": [{"path": {"type": "PathPrefix", "value": "/"}}]},
            ),
            least=1,
            most=16,
        ),
    },
)
GATEWAY = Map(
    {
        "gatewayClassName": TEXT,
        "addresses": ANY,
        "infrastructure": ANY,
        "allowedListeners": ANY,
        "listeners": Each(
            Map(
                {
                    "name": TEXT,
                    "hostname": TEXT,
                    "port": PORT,
                    "protocol": TEXT,
                    "tls": ANY,
                    "allowedRoutes": ANY,
                },
                ("name", "port", "protocol"),
                {"allowedRoutes": {"namespaces": {"from": "Same"}}},
            ),
            least=1,
            most=64,
        ),
    },
    ("gatewayClassName", "listeners"),
)
POOL_REF = Map(NAMED, ("name",), {"group": "inference.networking.k8s.io", "kind": "InferencePool"})
OBJECTIVE = Map({"priority": Whole(), "poolRef": POOL_REF}, ("poolRef",))
REWRITE = Map(
    {
        "poolRef": POOL_REF,
        "rules": Each(
            Map(
                {
                    "matches": ANY,
                    "targets": Each(
                        Map(
                            {"modelRewrite": TEXT, "weight": Whole(1, 1_000_000)}, ("modelRewrite",)
                        ),
                        least=1,
                    ),
                },
                ("targets",),
            ),
            least=1,
        ),
    },
    ("poolRef", "rules"),
)
TEMPLATE = Template()
GROUP = Map(
    {
        "replicas": Whole(0),
        "startupPolicy": Text(("LeaderCreated", "LeaderReady")),
        "networkConfig": ANY,
        "rolloutStrategy": ANY,
        "leaderWorkerTemplate": Map(
            {
                "leaderTemplate": TEMPLATE,
                "workerTemplate": TEMPLATE,
                "size": Whole(1),
                "restartPolicy": Text(
                    ("None", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart")
                ),
                "subGroupPolicy": ANY,
                "resourceClaimTemplates": ANY,
                "volumeClaimTemplates": ANY,
                "persistentVolumeClaimRetentionPolicy": ANY,
            },
            ("workerTemplate",),
            {"size": 1, "restartPolicy": "RecreateGroupOnPodRestart"},
        ),
    },
    ("leaderWorkerTemplate",),
    {
        "replicas": 1,
        "startupPolicy": "LeaderCreated",
        "rolloutStrategy": {
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 0, "partition": 0},
        },
    },
)
SCALED = Map(
    {
        "scaleTargetRef": Map(
            {"apiVersion": TEXT, "kind": TEXT, "name": TEXT, "envSourceContainerName": TEXT},
            ("name",),
        ),
        "pollingInterval": Whole(0),
        "cooldownPeriod": Whole(0),
        "initialCooldownPeriod": Whole(0),
        "idleReplicaCount": Whole(0),
        "minReplicaCount": Whole(0),
        "maxReplicaCount": Whole(0),
        "advanced": ANY,
        "fallback": ANY,
        "triggers": Each(
            Map(
                {
                    "type": TEXT,
                    "name": TEXT,
                    "metadata": ANY,
                    "metricType": TEXT,
                    "useCachedMetrics": ANY,
                    "authenticationRef": ANY,
                },
                ("type", "metadata"),
            ),
            least=1,
        ),
    },
    ("scaleTargetRef", "triggers"),
)

SPECS: dict[str, Any] = {
    "InferencePool": POOL,
    "HTTPRoute": ROUTE,
    "Gateway": GATEWAY,
    "InferenceObjective": OBJECTIVE,
    "InferenceModelRewrite": REWRITE,
    "LeaderWorkerSet": GROUP,
    "ScaledObject": SCALED,
}
"""Other custom kinds are taken as they are."""


@dataclass
class Reading:
    """What a walk over an object found."""

    causes: Causes = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def read_spec(kind: str, spec: Any) -> tuple[Any, Reading]:
    """The spec with defaults and without unknown fields, and what was found on the way."""
    reading = Reading()
    if kind not in SPECS:
        return spec, reading
    return _read(SPECS[kind], spec, "spec", reading), reading


def _read(schema: Any, value: Any, path: str, reading: Reading) -> Any:
    if isinstance(schema, Map):
        return _map(schema, value, path, reading)
    if isinstance(schema, Each):
        return _list(schema, value, path, reading)
    if isinstance(schema, Text):
        _text(schema, value, path, reading)
    elif isinstance(schema, Whole):
        _whole(schema, value, path, reading)
    elif isinstance(schema, Template):
        _template(value, path, reading)
    return value


def _map(schema: Map, value: Any, path: str, reading: Reading) -> Any:
    if not isinstance(value, dict):
        reading.causes.append(_wrong_type(path, value, "object"))
        return value
    result: Object = {}
    for key, inner in value.items():
        if key not in schema.fields:
            reading.unknown.append(f"{path}.{key}")
        elif inner is not None:
            result[key] = _read(schema.fields[key], inner, f"{path}.{key}", reading)
    for key in schema.required:
        if key not in result:
            reading.causes.append(cause(f"{path}.{key}", "Required value", "FieldValueRequired"))
    result = schema.defaults | result
    if schema.rule and (said := schema.rule(result)):
        reading.causes.append(cause(path, f"Invalid value: {said}"))
    return result


def _list(schema: Each, value: Any, path: str, reading: Reading) -> Any:
    if not isinstance(value, list):
        reading.causes.append(_wrong_type(path, value, "array"))
        return value
    if len(value) < schema.least:
        reading.causes.append(
            cause(
                path,
                f"Invalid value: {len(value)}: {path} in body should "
                f"have at least {schema.least} items",
            )
        )
    if len(value) > schema.most:
        reading.causes.append(
            cause(
                path,
                f"Too many: {len(value)}: must have at most {schema.most} items",
                "FieldValueTooMany",
            )
        )
    return [_read(schema.item, item, f"{path}[{n}]", reading) for n, item in enumerate(value)]


def _template(value: Any, path: str, reading: Reading) -> None:
    unknown, wrong = typed.template_errors(value)
    reading.unknown += [f"{path}.{field}" for field in unknown]
    reading.causes += [cause(path, f"Invalid value: {said}") for said in wrong]


def _text(schema: Text, value: Any, path: str, reading: Reading) -> None:
    if not isinstance(value, str):
        reading.causes.append(_wrong_type(path, value, "string"))
    elif schema.allowed and value not in schema.allowed:
        listed = ", ".join(f'"{word}"' for word in schema.allowed)
        reading.causes.append(
            cause(
                path,
                f'Unsupported value: "{value}": supported values: {listed}',
                "FieldValueNotSupported",
            )
        )


def _whole(schema: Whole, value: Any, path: str, reading: Reading) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        reading.causes.append(_wrong_type(path, value, "integer"))
    elif not schema.least <= value <= schema.most:
        edge = (
            f"greater than or equal to {schema.least}"
            if value < schema.least
            else f"less than or equal to {schema.most}"
        )
        reading.causes.append(
            cause(path, f"Invalid value: {value}: {path} in body should be {edge}")
        )


def _wrong_type(path: str, value: Any, wanted: str) -> dict[str, str]:
    return cause(
        path,
        f'Invalid value: "{type(value).__name__}": {path} in body must be of type {wanted}',
        "FieldValueTypeInvalid",
    )
