"""The catalogue and our plugins say the same of each type that both have."""

from typing import Any

import msgspec
import pytest

from routing.llmd.catalogue import shape
from routing.llmd.other_types import OLD_TYPES, TYPES, spec_of
from routing.pool.policies.plugins import IN_PROFILES, INERT, OUTSIDE

OURS = IN_PROFILES | OUTSIDE


def defaults(kind: Any) -> dict[str, Any]:
    """Names on the wire with their defaults; what is required has none."""
    found = {}
    for field in msgspec.structs.fields(kind):
        value = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            value = field.default_factory()
        found[field.encode_name] = (
            msgspec.to_builtins(value, str_keys=True) if _has(value) else None
        )
    return msgspec.json.decode(msgspec.json.encode(found))


def _has(value: Any) -> bool:
    return value is not msgspec.NODEFAULT


@pytest.mark.parametrize("name", sorted(OURS))
def test_parameters_and_defaults_are_the_same(name: str) -> None:
    spec = TYPES[name]
    assert spec.has_counterpart
    assert spec.parameters is not None
    theirs = defaults(spec.parameters)
    if name == "disagg-profile-handler":
        # The stage encode is converted away.
        del theirs["profiles"]["encode"], theirs["deciders"]["encode"]

    assert defaults(OURS[name]) == theirs


def test_every_type_with_a_counterpart_runs_here() -> None:
    mapped = {name for name, spec in TYPES.items() if spec.has_counterpart}

    assert mapped == set(OURS) | set(INERT)


def test_kinds_are_those_of_our_folders() -> None:
    for name, plugin in IN_PROFILES.items():
        methods = {"filter": "keep", "scorer": "score", "picker": "pick"}
        assert hasattr(plugin, methods[TYPES[name].kind])


def test_old_names_lead_to_current_ones_and_every_multicluster_type_is_carried() -> None:
    assert set(OLD_TYPES.values()) <= set(TYPES)
    assert not set(OLD_TYPES) & set(TYPES)
    assert spec_of("multicluster-anything") is not None
    assert spec_of("singlecluster-anything") is None


def test_objects_in_defaults_are_not_shared() -> None:
    inner = shape(values=(list[int], []))
    outer = shape(inner=(inner, inner))

    assert outer().inner.values is not outer().inner.values
