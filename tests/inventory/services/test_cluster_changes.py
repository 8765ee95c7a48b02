"""Clusters are added and changed: references, what depends on them, who may."""

from typing import Any

import pytest

from controlplane.audit.models import AuditEntry
from controlplane.common.permissions import NotPermittedError
from controlplane.operations.models import Operation, OutboxEvent
from inventory import services
from inventory.errors import ClusterHeldError, SlugTakenError, ValueNotAllowedError
from inventory.models import Cluster
from tests.controlplane.serving.factories import make_assigned, make_pool
from tests.factories import make_ben, make_olga
from tests.inventory.factories import make_cluster, make_node, make_site

pytestmark = pytest.mark.django_db


def create(**overrides: Any) -> Cluster:
    defaults = {
        "slug": "seoul-1", "name": "Seoul 1", "kind": "kubernetes",
        "connection_reference": "seoul",
    }  # fmt: skip
    site = overrides.pop("site", None) or make_site()
    actor = overrides.pop("actor", None) or make_olga()
    return services.create_cluster(site_id=site.pk, actor=actor, **defaults | overrides)


def looked_at(**found: Any) -> Cluster:
    """A cluster about which a test found something out."""
    values = {
        "version": "v1.36.2", "kinds": [["v1", "Node"]], "missing_rights": [], "failures": 3,
        "error": "down", "error_code": "cluster-unavailable",
    }  # fmt: skip
    return make_cluster(kind="kubernetes", connection_reference="seoul", **values | found)


def test_a_cluster_belongs_to_a_site() -> None:
    site = make_site()

    assert create(site=site, kind="local", connection_reference="").site == site
    with pytest.raises(SlugTakenError):
        create()


def test_the_connection_of_a_new_kubernetes_cluster_is_tested(sent_tasks: list[Any]) -> None:
    cluster = create()

    operation = Operation.objects.get()
    assert (operation.kind, operation.subject_id) == ("inventory.test-connection", str(cluster.pk))
    assert OutboxEvent.objects.filter(type="consort.cluster.created").count() == 1


def test_a_cluster_without_an_api_server_is_not_tested() -> None:
    create(kind="static", connection_reference="")

    assert not Operation.objects.exists()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        pytest.param({"connection_reference": ""}, "in-cluster", id="no-reference"),
        pytest.param({"connection_reference": "../x"}, "name of a folder", id="path"),
        pytest.param({"connection_reference": "/etc/kube"}, "name of a folder", id="absolute"),
        pytest.param({"connection_reference": "a\x00b"}, "connection_reference", id="null"),
        pytest.param({"connection_reference": "a" * 201}, "connection_reference", id="long"),
        pytest.param({"kind": "local"}, "Only a Kubernetes cluster", id="kind"),
        pytest.param({"kind": "cloud"}, "kind", id="unknown-kind"),
        pytest.param({"namespace": "A b"}, "small letters", id="namespace"),
        pytest.param({"namespace": ""}, "namespace", id="no-namespace"),
        pytest.param({"namespace": "a" * 64}, "namespace", id="long-namespace"),
    ],
)
def test_what_cannot_be_is_refused_with_its_rule(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueNotAllowedError, match=sentence):
        create(**values)

    assert not Cluster.objects.exists()


def test_two_clusters_do_not_share_a_connection() -> None:
    create()

    with pytest.raises(ValueNotAllowedError, match="Another cluster has this connection"):
        create(slug="seoul-2", actor=make_olga())


def test_a_change_keeps_before_and_after() -> None:
    cluster = looked_at()

    services.change_cluster(
        cluster_id=cluster.pk, name="Seoul, hall 2", reason="moved", actor=make_olga()
    )

    entry = AuditEntry.objects.get(object_id=str(cluster.pk))
    assert entry.after["name"] == "Seoul, hall 2"
    assert entry.before["name"] == cluster.name
    cluster.refresh_from_db()
    assert cluster.version == "v1.36.2"
    assert not Operation.objects.exists()


def test_another_connection_makes_unknown_what_was_known_and_is_tested() -> None:
    cluster = looked_at()

    services.change_cluster(
        cluster_id=cluster.pk, connection_reference="busan", reason="moved", actor=make_olga()
    )

    cluster.refresh_from_db()
    assert (cluster.version, cluster.kinds, cluster.missing_rights) == ("", None, None)
    assert (cluster.failures, cluster.error, cluster.retry_at) == (0, "", None)
    assert Operation.objects.get().kind == "inventory.test-connection"


@pytest.mark.parametrize("field", ["connection_reference", "namespace"])
def test_a_connection_stays_while_engines_run_there(field: str) -> None:
    cluster = looked_at()
    pool = make_pool()
    make_assigned(pool, make_node(cluster=cluster))

    with pytest.raises(ClusterHeldError, match=pool.slug):
        services.change_cluster(
            cluster_id=cluster.pk, reason="moved", actor=make_olga(), **{field: "other"}
        )
    services.change_cluster(cluster_id=cluster.pk, name="B", reason="word", actor=make_olga())


def test_ben_adds_and_changes_no_cluster() -> None:
    cluster = looked_at()

    with pytest.raises(NotPermittedError):
        create(actor=make_ben())
    with pytest.raises(NotPermittedError):
        services.change_cluster(cluster_id=cluster.pk, name="B", reason="x", actor=make_ben())
