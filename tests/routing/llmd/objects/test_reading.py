"""Objects of a gateway from text: kinds, groups, places of what is wrong."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.core.refusals import DocumentError
from routing.llmd import yaml_text
from routing.llmd.objects.model import HttpRoute, InferenceObjective, InferencePool
from routing.llmd.objects.reading import joined, read
from tests.routing.llmd.objects.samples import OBJECTIVES, POOL, REWRITES, ROUTE, together

EVERYTHING = together(POOL, ROUTE, OBJECTIVES, REWRITES)


def changed(text: str, *path: str | int, to: Any) -> str:
    """The first document of a text with one value changed."""
    tree = yaml_text.load_all(text)[0]
    inner = tree
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = to
    return json.dumps(tree)


def test_every_kind_is_read_with_its_place() -> None:
    found = read(EVERYTHING)

    kinds = [type(one.item).__name__ for one in found.placed]
    assert kinds == [
        "InferencePool",
        "HttpRoute",
        *["InferenceObjective"] * 3,
        *["InferenceModelRewrite"] * 2,
    ]
    assert [one.pointer for one in found.placed] == [f"/{place}" for place in range(7)]


def test_both_groups_are_read_and_the_old_one_is_named() -> None:
    notes = [note for note in read(EVERYTHING).notes if note.kind == "renamed"]

    assert [note.pointer for note in notes] == ["/3/apiVersion", "/6/apiVersion"]
    assert all("llm-d.ai/v1alpha2" in note.message for note in notes)


def test_a_list_and_json_are_read_like_documents() -> None:
    items = [tree for tree in yaml_text.load_all(EVERYTHING) if tree is not None]
    listed = read(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    assert [one.item for one in listed.placed] == [one.item for one in read(EVERYTHING).placed]
    assert listed.placed[1].pointer == "/0/items/1"


def test_defaults_are_those_of_the_resource_definitions() -> None:
    bare = changed(POOL, "spec", "endpointPickerRef", to={"name": "epp", "port": {"number": 1}})
    (pool,) = read(bare).placed
    route = read(changed(ROUTE, "spec", "rules", 0, "backendRefs", 0, to={"name": "s"})).placed[0]

    assert isinstance(pool.item, InferencePool)
    picker = pool.item.spec.endpoint_picker_ref
    assert picker is not None
    assert (picker.group, picker.kind, picker.failure_mode) == ("", "Service", "FailClose")
    assert isinstance(route.item, HttpRoute)
    assert route.item.spec.rules[0].backend_refs[0].weight == 1
    usual = read(OBJECTIVES).placed[2].item
    assert isinstance(usual, InferenceObjective)
    assert usual.spec.priority is None


def test_unknown_fields_and_other_kinds_are_left_out_and_the_latter_told() -> None:
    extended = changed(POOL, "spec", "somethingNew", to={"a": 1})
    gateway = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: g}"

    found = read(together(POOL, gateway))

    assert read(extended).placed[0].item == found.placed[0].item
    assert [(note.kind, note.pointer, note.subject) for note in found.notes] == [
        ("kept", "/1", "Gateway")
    ]


@pytest.mark.parametrize(
    ("text", "path", "value", "pointer"),
    [
        (POOL, ("spec", "targetPorts", 1, "number"), "8001", "/0/spec/targetPorts/1/number"),
        (POOL, ("spec", "targetPorts", 1, "number"), 8000, "/0/spec/targetPorts/1/number"),
        (POOL, ("spec", "targetPorts", 0, "number"), 65536, "/0/spec/targetPorts/0/number"),
        (POOL, ("spec", "targetPorts"), [], "/0/spec/targetPorts"),
        (POOL, ("spec", "targetPorts"), [{"number": 1 + n} for n in range(9)],
         "/0/spec/targetPorts"),
        (POOL, ("spec", "appProtocol"), "grpc", "/0/spec/appProtocol"),
        (POOL, ("spec", "selector"), {"app": "vllm"}, "/0/spec/selector"),
        (POOL, ("spec", "endpointPickerRef"), {"name": "e"}, "/0/spec/endpointPickerRef/port"),
        (POOL, ("spec", "endpointPickerRef", "failureMode"), "Open",
         "/0/spec/endpointPickerRef/failureMode"),
        (POOL, ("apiVersion",), "inference.networking.x-k8s.io/v1alpha2", "/0/apiVersion"),
        (POOL, ("kind",), 3, "/0"),
        (POOL, ("metadata",), {"name": ""}, "/0/metadata/name"),
        (OBJECTIVES, ("spec", "priority"), 2**31, "/0/spec/priority"),
        (OBJECTIVES, ("spec", "priority"), "high", "/0/spec/priority"),
        (OBJECTIVES, ("spec",), {"priority": 1}, "/0/spec"),
        (ROUTE, ("spec", "rules", 0, "backendRefs", 1, "weight"), -1,
         "/0/spec/rules/0/backendRefs/1/weight"),
        (REWRITES, ("spec", "rules", 0, "targets", 1, "weight"), 1_000_001,
         "/0/spec/rules/0/targets/1/weight"),
        (REWRITES, ("spec", "rules", 0, "targets", 1), {"modelRewrite": "x"},
         "/0/spec/rules/0/targets"),
        (REWRITES, ("spec", "rules", 0, "targets", 1, "modelRewrite"), "granite",
         "/0/spec/rules/0/targets/1/modelRewrite"),
        (REWRITES, ("spec", "rules", 0, "targets"), [], "/0/spec/rules/0/targets"),
        (REWRITES, ("spec", "rules", 0, "matches", 0, "model", "type"), "Regex",
         "/0/spec/rules/0/matches/0/model/type"),
        (REWRITES, ("spec", "rules", 0, "matches"), {}, "/0/spec/rules/0/matches"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_place(
    text: str, path: tuple[str | int, ...], value: Any, pointer: str
) -> None:
    with pytest.raises(DocumentError) as refused:
        read(changed(text, *path, to=value))

    assert refused.value.pointer == pointer
    assert refused.value.message.endswith(".")


def test_pointers_name_the_text_among_several() -> None:
    parts = [read(POOL, source="pool.yaml"), read(REWRITES, source="canary.yaml")]

    assert [one.pointer for one in joined(parts).placed] == [
        "pool.yaml/0",
        "canary.yaml/0",
        "canary.yaml/1",
    ]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["kind", "apiVersion", "metadata", "spec", "items", "rules"])
                | st.text(max_size=3),
                inner | st.sampled_from(["InferencePool", "List", "llm-d.ai/v1alpha2"]),
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_tree_is_read_or_refused(tree: Any) -> None:
    with contextlib.suppress(DocumentError):
        read(json.dumps(tree))
