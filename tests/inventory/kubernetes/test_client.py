"""The client against a cluster (fake, or the real one), and against servers that lie."""

import time
from pathlib import Path
from typing import Any

import pytest

from inventory.kubernetes import rights, wanted
from inventory.kubernetes.client import ClusterClient
from inventory.kubernetes.connection import read_connection
from inventory.kubernetes.errors import (
    AnswerError,
    ClusterRefusedError,
    ClusterUnavailableError,
    ExpiredError,
    FieldConflictError,
    KindMissingError,
    NotFoundError,
    StaleError,
)
from inventory.kubernetes.labels import MANAGER
from inventory.kubernetes.wire import Call, Wire
from tests.inventory.kubernetes.answering import KINDS, NODE, Asked, answering, nodes

CONFIG_MAP = ("v1", "ConfigMap")
MERGE = "application/merge-patch+json"


@pytest.fixture
def client(cluster: Any, tmp_path: Path) -> ClusterClient:
    """A client of the cluster, with credentials read as an installation reads them."""
    cluster.write_credentials(tmp_path / "lab")
    return ClusterClient(read_connection("lab", tmp_path), timeout=15)


@pytest.fixture
def namespace(cluster: Any) -> str:
    """A new namespace."""
    name: str = cluster.namespace()
    return name


def config_map(namespace: str, name: str = "one", **values: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"colour": "blue"}},
        "data": {"key": "value", **values},
    }


def test_the_version_and_the_kinds_are_told(client: ClusterClient) -> None:
    assert client.version().startswith("v1.")
    needed = {kind.pair for kind in wanted.WANTED if kind.needed}
    assert needed <= client.kinds()


def test_an_apply_creates_and_the_same_again_writes_nothing(
    client: ClusterClient, namespace: str
) -> None:
    first = client.apply(config_map(namespace))
    again = client.apply(config_map(namespace))

    assert first["data"] == {"key": "value"}
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert {entry["manager"] for entry in first["metadata"]["managedFields"]} == {MANAGER}


def test_a_field_that_is_no_longer_sent_goes(client: ClusterClient, namespace: str) -> None:
    client.apply(config_map(namespace, other="x"))

    assert client.apply(config_map(namespace))["data"] == {"key": "value"}


def test_a_field_of_somebody_else_is_not_taken(client: ClusterClient, namespace: str) -> None:
    client.apply(config_map(namespace))
    path = f"/api/v1/namespaces/{namespace}/configmaps/one"
    by_hand = {"fieldManager": "kubectl-edit"}
    theirs = Call("PATCH", path, by_hand, {"data": {"key": "theirs"}}, MERGE)
    Wire(client.connection, timeout=15).json(theirs)

    with pytest.raises(FieldConflictError) as conflict:
        client.apply(config_map(namespace))

    assert (conflict.value.manager, conflict.value.fields) == ("kubectl-edit", [".data.key"])
    assert client.get(*CONFIG_MAP, "one", namespace)["data"] == {"key": "theirs"}


def test_a_dry_run_says_what_would_be_and_stores_nothing(
    client: ClusterClient, namespace: str
) -> None:
    shown = client.apply(config_map(namespace), dry_run=True)

    assert shown["data"] == {"key": "value"}
    with pytest.raises(NotFoundError):
        client.get(*CONFIG_MAP, "one", namespace)


def test_an_unknown_field_is_refused_and_not_dropped(client: ClusterClient, namespace: str) -> None:
    wrong = config_map(namespace) | {"dta": {"key": "value"}}

    with pytest.raises(ClusterRefusedError, match="dta"):
        client.apply(wrong)


def test_what_exists_is_not_created_again(client: ClusterClient, namespace: str) -> None:
    client.create(config_map(namespace))

    with pytest.raises(ClusterRefusedError) as refused:
        client.create(config_map(namespace))
    assert refused.value.reason == "AlreadyExists"


def test_a_namespace_that_is_missing_is_not_found(client: ClusterClient) -> None:
    with pytest.raises(NotFoundError):
        client.apply(config_map("nowhere-at-all"))


def test_a_kind_that_is_not_installed_is_named(client: ClusterClient, namespace: str) -> None:
    with pytest.raises(KindMissingError, match=r"Thing of things\.example/v1"):
        client.list("things.example/v1", "Thing")
    with pytest.raises(KindMissingError):
        client.get("v1", "Thing", "one", namespace)


def test_a_patch_removes_what_is_none_and_is_guarded_by_the_version_read(
    client: ClusterClient, namespace: str
) -> None:
    first = client.create(config_map(namespace, other="x"))

    changed = client.merge_patch(*CONFIG_MAP, "one", {"data": {"other": None}}, namespace=namespace)
    assert changed["data"] == {"key": "value"}
    stale = {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}, "data": {}}
    with pytest.raises(StaleError):
        client.merge_patch(*CONFIG_MAP, "one", stale, namespace=namespace)


def test_another_object_of_the_same_name_is_not_deleted(
    client: ClusterClient, namespace: str
) -> None:
    mine = client.create(config_map(namespace))

    with pytest.raises(StaleError):
        client.delete(*CONFIG_MAP, "one", namespace, uid="another-uid")
    assert client.delete(*CONFIG_MAP, "one", namespace, uid=mine["metadata"]["uid"]) is True
    assert client.delete(*CONFIG_MAP, "one", namespace) is False


def test_a_list_is_whole_over_pages_and_asked_for_by_labels(
    client: ClusterClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inventory.kubernetes.client.PAGE", 3)
    names = [f"map-{number}" for number in range(7)]
    for name in names:
        client.create(config_map(namespace, name))

    found = client.list(*CONFIG_MAP, namespace=namespace, labels="colour=blue")

    assert sorted(item["metadata"]["name"] for item in found.items) == names
    assert {item["kind"] for item in found.items} == {"ConfigMap"}
    one = client.list(*CONFIG_MAP, namespace=namespace, fields="metadata.name=map-3")
    assert [item["metadata"]["name"] for item in one.items] == ["map-3"]
    with pytest.raises(AnswerError, match="more than 5"):
        client.list(*CONFIG_MAP, namespace=namespace, labels="colour=blue", most=5)


def test_a_watch_goes_on_from_a_list(client: ClusterClient, namespace: str) -> None:
    start = client.list(*CONFIG_MAP, namespace=namespace).resource_version
    client.create(config_map(namespace))
    client.delete(*CONFIG_MAP, "one", namespace)

    events = client.watch(*CONFIG_MAP, namespace=namespace, resource_version=start, seconds=2)

    mine = [event for event in events if event.object["metadata"].get("name") == "one"]
    assert [event.type for event in mine] == ["ADDED", "DELETED"]


def test_a_right_that_we_have_is_not_missing(client: ClusterClient, namespace: str) -> None:
    assert client.may(rights.needed((namespace,))) == ()


@pytest.mark.fake_only
def test_logs_are_their_last_bytes(client: ClusterClient, cluster: Any, namespace: str) -> None:
    cluster.add_node("gpu-1")
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "one", "namespace": namespace},
            "spec": {"containers": [{"name": "engine", "image": "engine"}]},
        }
    )
    cluster.settle()
    cluster.logs[namespace, "one"] = "first\n" + "x" * 100 + "\nlast"

    assert client.logs(namespace, "one", "engine", bytes=10).endswith("last")
    assert len(client.logs(namespace, "one", "engine", bytes=10)) == 10


@pytest.mark.parametrize("name", ["../pods/x", "a?force=true", "a/status", ""])
def test_a_name_never_leads_to_another_path(name: str) -> None:
    with answering(lambda asked: asked.send(KINDS)) as server:
        with pytest.raises(ValueError, match="can have the name"):
            ClusterClient(server.connection).get("v1", "Node", name)

        assert server.asked == []


def test_a_list_whose_place_expired_begins_anew() -> None:
    first = {"metadata": {"resourceVersion": "1", "continue": "t"}, "items": [NODE]}
    whole = {"metadata": {"resourceVersion": "9"}, "items": [NODE]}
    steps: list[tuple[Any, int]] = [
        (first, 200),
        ({"kind": "Status", "reason": "Expired", "code": 410}, 410),
        (whole, 200),
    ]

    def answer(asked: Asked) -> None:
        asked.send(KINDS) if asked.path == "/api/v1" else asked.send(*steps.pop(0))

    with answering(answer) as server:
        found = ClusterClient(server.connection).list("v1", "Node")

    assert (len(found.items), found.resource_version) == (1, "9")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param({"metadata": {"resourceVersion": "1", "continue": "t"}, "items": []}, id="a"),
        pytest.param(
            {"metadata": {"resourceVersion": "1", "continue": "t"}, "items": [NODE]}, id="b"
        ),
    ],
)
def test_a_list_that_never_ends_is_refused(page: dict[str, Any]) -> None:
    with (
        answering(nodes(*[page] * 5)) as server,
        pytest.raises(AnswerError, match="does not come to an end"),
    ):
        ClusterClient(server.connection).list("v1", "Node")


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(None, id="null"),
        pytest.param([NODE], id="list"),
        pytest.param("node", id="text"),
        pytest.param({}, id="empty"),
        pytest.param({"kind": "Node"}, id="no-metadata"),
        pytest.param({"kind": "Pod", "metadata": {"name": "n"}}, id="other-kind"),
        pytest.param({"kind": "Node", "metadata": {"name": "m"}}, id="other-name"),
        pytest.param({"kind": "Node", "metadata": {"name": None}}, id="no-name"),
        pytest.param({"kind": "Node", "metadata": {"name": "n", "labels": []}}, id="labels"),
    ],
)
def test_an_object_that_lies_is_refused(answer: Any) -> None:
    with answering(nodes(answer)) as server, pytest.raises(AnswerError):
        ClusterClient(server.connection).get("v1", "Node", "n")


def test_a_list_that_lies_is_refused() -> None:
    for answer in ({"items": [NODE]}, {"metadata": {"resourceVersion": "1"}, "items": [{}]}, []):
        with answering(nodes(answer)) as server, pytest.raises(AnswerError):
            ClusterClient(server.connection).list("v1", "Node")


def test_a_watch_that_lies_is_refused_and_one_that_expired_says_so() -> None:
    lying = b'{"type":"ADDED","object":{"kind":"Node","metadata":{}}}\n'
    gone = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Gone"}}\n'

    for line, expected in ((lying, AnswerError), (gone, ExpiredError)):
        with answering(
            lambda asked, line=line: asked.send(KINDS if asked.path == "/api/v1" else line)
        ) as server:
            events = ClusterClient(server.connection).watch(
                "v1", "Node", resource_version="1", seconds=1
            )
            with pytest.raises(expected):
                list(events)


def test_a_group_whose_server_is_down_is_left_out_of_the_kinds() -> None:
    groups = {"groups": [{"versions": [{"groupVersion": "metrics.k8s.io/v1"}]}]}

    def answer(asked: Asked) -> None:
        if asked.path == "/apis":
            asked.send(groups)
        elif asked.path == "/api/v1":
            asked.send(KINDS)
        else:
            asked.send({"kind": "Status"}, 503)

    with answering(answer) as server:
        assert ClusterClient(server.connection).kinds() == {("v1", "Node")}


def test_a_kind_is_looked_up_once() -> None:
    page = {"metadata": {"resourceVersion": "1"}, "items": []}
    with answering(nodes(page, page, page)) as server:
        client = ClusterClient(server.connection)
        for _ in range(3):
            client.for_one_run().list("v1", "Node")

        assert server.paths.count("/api/v1") == 1


@pytest.mark.fake_only
def test_one_run_waits_for_a_silent_server_once(client: ClusterClient, cluster: Any) -> None:
    cluster.faults.black_hole()
    client.timeout = 0.3
    client.__dict__.pop("_wire", None)
    run = client.for_one_run()

    started = time.monotonic()
    for _ in range(20):
        with pytest.raises(ClusterUnavailableError):
            run.version()

    assert time.monotonic() - started < 2
    assert run.failure is not None
    assert run.answered_at is None
    assert client.failure is None
    cluster.faults.clear()
    assert client.for_one_run().version().startswith("v1.")


@pytest.mark.fake_only
def test_a_webhook_that_fails_does_not_end_a_run(client: ClusterClient, cluster: Any) -> None:
    cluster.faults.answer(500, "failed calling webhook", path="/version", times=1)
    run = client.for_one_run()

    with pytest.raises(ClusterUnavailableError, match="webhook"):
        run.version()
    assert run.failure is None
    assert run.version().startswith("v1.")
