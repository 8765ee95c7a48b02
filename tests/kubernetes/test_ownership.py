"""Server-side apply in the fake: who owns what, what conflicts, what goes away."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kubernetes.fake.errors import ApiError
from tests.kubernetes.fake.fields import from_fields_v1, leaves, to_fields_v1
from tests.kubernetes.fake.ownership import Writer, apply, update

Object = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"


def writer(manager: str, subresource: str = "") -> Writer:
    return Writer(manager, "apps/v1", NOW, subresource)


def deployment(**spec: Any) -> Object:
    meta = {"name": "engine", "namespace": "a"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def engine(image: str = "vllm:1", **container: Any) -> Object:
    containers = [{"name": "server", "image": image} | container]
    return deployment(replicas=1, template={"spec": {"containers": containers}})


def fields_of(item: Object, manager: str) -> Any:
    entries = {entry["manager"]: entry for entry in item["metadata"]["managedFields"]}
    return entries[manager]["fieldsV1"] if manager in entries else None


def test_an_apply_owns_its_leaves_with_list_items_by_key() -> None:
    item = apply(None, engine(env=[{"name": "A", "value": "1"}]), writer("consort"), force=False)

    containers = fields_of(item, "consort")["f:spec"]["f:template"]["f:spec"]["f:containers"]
    assert containers == {
        'k:{"name":"server"}': {
            ".": {},
            "f:name": {},
            "f:image": {},
            "f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}},
        }
    }


def test_a_field_of_another_manager_is_a_conflict_that_names_both() -> None:
    item = apply(None, engine(), writer("consort"), force=False)
    item = update(item, item | {"spec": item["spec"] | {"replicas": 0}}, writer("kubectl-scale"))

    with pytest.raises(ApiError) as refused:
        apply(item, engine(), writer("consort"), force=False)

    assert refused.value.status == 409
    (cause,) = refused.value.details["causes"]
    assert cause["field"] == ".spec.replicas"
    assert '"kubectl-scale"' in cause["message"]


def test_conflicts_are_told_in_the_servers_words() -> None:
    item = apply(None, deployment(replicas=2, paused=True), writer("argo"), force=False)

    with pytest.raises(ApiError) as one:
        apply(item, deployment(replicas=3), writer("consort"), force=False)
    with pytest.raises(ApiError) as two:
        apply(item, deployment(replicas=3, paused=False), writer("consort"), force=False)

    assert one.value.message == 'Apply failed with 1 conflict: conflict with "argo": .spec.replicas'
    assert two.value.message == (
        'Apply failed with 2 conflicts: conflicts with "argo":\n- .spec.paused\n- .spec.replicas'
    )


def test_the_same_value_of_two_managers_is_shared_and_stays_until_both_let_go() -> None:
    item = apply(None, deployment(replicas=2), writer("a"), force=False)
    item = apply(item, deployment(replicas=2, paused=True), writer("b"), force=False)

    without_a = apply(item, deployment(), writer("a"), force=False)
    without_both = apply(without_a, deployment(paused=True), writer("b"), force=False)

    assert without_a["spec"] == {"replicas": 2, "paused": True}
    assert without_both["spec"] == {"paused": True}


def test_force_takes_the_field() -> None:
    item = apply(None, engine("vllm:1"), writer("a"), force=False)

    item = apply(item, engine("vllm:2"), writer("b"), force=True)

    image = "f:image"
    key = 'k:{"name":"server"}'
    owned = fields_of(item, "a")["f:spec"]["f:template"]["f:spec"]["f:containers"][key]
    assert image not in owned
    assert item["spec"]["template"]["spec"]["containers"][0]["image"] == "vllm:2"


def test_a_container_that_another_manager_injected_survives() -> None:
    item = apply(None, engine(), writer("consort"), force=False)
    sidecar = {"name": "proxy", "image": "envoy:1"}
    injected = deployment(template={"spec": {"containers": [sidecar]}})
    item = apply(item, injected, writer("mesh"), force=False)

    item = apply(item, engine("vllm:2"), writer("consort"), force=False)

    names = {c["name"]: c["image"] for c in item["spec"]["template"]["spec"]["containers"]}
    assert names == {"server": "vllm:2", "proxy": "envoy:1"}


def test_a_list_item_that_its_manager_stops_sending_goes() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    item = apply(None, engine(env=env), writer("consort"), force=False)

    item = apply(item, engine(env=env[:1]), writer("consort"), force=False)

    (container,) = item["spec"]["template"]["spec"]["containers"]
    assert container["env"] == env[:1]


def test_a_status_writer_owns_nothing_of_the_wish() -> None:
    item = apply(None, engine(), writer("consort"), force=False)

    item = update(item, item | {"status": {"replicas": 1}}, writer("controller", "status"))

    assert fields_of(item, "controller") == {"f:status": {"f:replicas": {}}}
    apply(item, engine(), writer("consort"), force=False)


words = st.sampled_from(["a", "b", "c", "d"])
values = st.recursive(
    st.integers(0, 3) | st.text("xy", max_size=2),
    lambda inner: st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
specs = st.dictionaries(words, values, max_size=4)


@given(specs, specs)
def test_an_apply_leaves_exactly_what_its_only_manager_last_sent(first: Any, second: Any) -> None:
    item = apply(None, deployment(**first), writer("consort"), force=False)

    item = apply(item, deployment(**second), writer("consort"), force=False)

    assert leaves(item) == leaves(deployment(**second))


@given(specs, specs)
def test_applying_again_changes_nothing(first: Any, second: Any) -> None:
    item = apply(None, deployment(**first), writer("a"), force=False)
    item = apply(item, deployment(**second), writer("b"), force=True)

    assert apply(item, deployment(**second), writer("b"), force=False) == item


@given(specs)
def test_the_wire_form_of_fields_is_read_back_as_written(spec: Any) -> None:
    paths = set(leaves(deployment(**spec)))

    assert from_fields_v1(to_fields_v1(paths)) == paths
