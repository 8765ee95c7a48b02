"""What people do to the fleet in the console."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from controlplane.tenancy.models import User
from inventory.models import Cluster, ImportRun, Node
from inventory.services import load_catalogue
from tests.factories import make_ana, make_olga, make_user
from tests.inventory.factories import make_cluster, make_node, make_site

pytestmark = pytest.mark.django_db

GOOD = (
    "site,country,cluster,cluster_kind,hostname,vendor,model,accelerators\n"
    "kr-seo-1,KR,seoul-1,local,gpu-01,amd,amd-mi325x,8\n"
)


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def upload(client: Client, text: str, **fields: str) -> object:
    file = SimpleUploadedFile("nodes.csv", text.encode())
    return client.post("/fleet/import", {"file": file} | fields)


def test_cordon_needs_a_reason_and_comes_back_to_the_list() -> None:
    node, client = make_node(), client_of(make_olga())

    without = client.post(f"/fleet/nodes/{node.pk}/cordon", {"next": "/fleet/nodes?vendor=amd"})
    state_without = Node.objects.get(pk=node.pk).state
    with_reason = client.post(
        f"/fleet/nodes/{node.pk}/cordon",
        {"reason": "fan", "next": "/fleet/nodes?vendor=amd"}, follow=True,
    )  # fmt: skip

    assert without["Location"] == "/fleet/nodes?vendor=amd"
    assert state_without == "ready"
    assert Node.objects.get(pk=node.pk).state == "cordoned"
    assert b"It is cordoned." in with_reason.content


def test_a_node_in_another_state_is_a_sentence_with_what_is_allowed() -> None:
    node, client = make_node(state="maintenance"), client_of(make_olga())

    response = client.post(f"/fleet/nodes/{node.pk}/cordon", {"reason": "x"}, follow=True)

    assert b"cannot be cordoned" in response.content
    assert Node.objects.get(pk=node.pk).state == "maintenance"


def test_uncordon_brings_it_back() -> None:
    node, client = make_node(state="cordoned"), client_of(make_olga())

    client.post(f"/fleet/nodes/{node.pk}/uncordon")

    assert Node.objects.get(pk=node.pk).state == "ready"


def test_readers_are_told_and_people_of_a_tenant_find_no_node() -> None:
    node = make_node()

    reader = client_of(make_user(None, "readonly")).post(
        f"/fleet/nodes/{node.pk}/cordon", {"reason": "x"}, follow=True
    )
    ben = client_of(make_ana()).post(f"/fleet/nodes/{node.pk}/cordon", {"reason": "x"})

    assert b"inventory.cordon_node" in reader.content
    assert ben.status_code == 404
    assert Node.objects.get(pk=node.pk).state == "ready"


def test_nobody_is_sent_to_another_site() -> None:
    node, client = make_node(), client_of(make_olga())

    response = client.post(
        f"/fleet/nodes/{node.pk}/cordon", {"reason": "x", "next": "https://example.org"}
    )

    assert response["Location"] == "/fleet/nodes"


def test_a_file_is_checked_first_and_stored_only_when_asked() -> None:
    load_catalogue()
    client = client_of(make_olga())

    checked = upload(client, GOOD)
    stored_by_check = Node.objects.count()
    applied = upload(client, GOOD, apply="1")

    assert b"The file can be imported. Nothing was stored." in checked.content
    assert stored_by_check == 0
    assert b"The file was imported." in applied.content
    assert Node.objects.get().hostname == "gpu-01"


def test_each_wrong_row_is_named_and_nothing_is_stored() -> None:
    load_catalogue()

    response = upload(client_of(make_olga()), GOOD.replace("amd,amd", "nope,amd"), apply="1")

    assert response.status_code == 422
    assert b"1 row was refused." in response.content
    assert b"nope" in response.content
    assert Node.objects.count() == 0
    assert ImportRun.objects.get().state == "refused"


def test_a_form_without_a_file_says_so() -> None:
    response = client_of(make_olga()).post("/fleet/import", {})

    assert response.status_code == 422
    assert b'id="errors"' in response.content


def test_the_import_page_needs_the_permission() -> None:
    assert client_of(make_user(None, "readonly")).get("/fleet/import").status_code == 403


CLUSTER = {
    "slug": "seoul-1", "name": "Seoul 1", "kind": "kubernetes", "connection_reference": "seoul",
    "namespace": "serving",
}  # fmt: skip


def test_a_cluster_is_added_and_its_page_opens() -> None:
    client = client_of(make_olga())

    response = client.post("/fleet/clusters/add", CLUSTER | {"site_id": str(make_site().pk)})

    cluster = Cluster.objects.get()
    assert response["Location"] == f"/fleet/clusters/{cluster.pk}"
    assert (cluster.connection_reference, cluster.namespace) == ("seoul", "serving")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"connection_reference": "../etc"}, "name of a folder"),
        ({"connection_reference": ""}, "in-cluster"),
        ({"namespace": "A b"}, "small letters"),
        ({"slug": "a b"}, "valid"),
        ({"kind": "cloud"}, "cloud"),
    ],
)
def test_a_cluster_that_cannot_be_comes_back_with_the_rule(
    values: dict[str, str], sentence: str
) -> None:
    client = client_of(make_olga())

    response = client.post(
        "/fleet/clusters/add", CLUSTER | {"site_id": str(make_site().pk)} | values
    )

    assert response.status_code == 422
    assert sentence in response.content.decode()
    assert not Cluster.objects.exists()


def test_a_cluster_is_changed_with_a_reason() -> None:
    cluster = make_cluster(kind="kubernetes", connection_reference="seoul")
    client = client_of(make_olga())
    path = f"/fleet/clusters/{cluster.pk}/change"
    values = {"name": "New", "connection_reference": "seoul", "namespace": "serving"}

    assert client.post(path, values).status_code == 422
    response = client.post(path, values | {"reason": "moved"})

    cluster.refresh_from_db()
    assert response["Location"] == f"/fleet/clusters/{cluster.pk}"
    assert (cluster.name, cluster.namespace) == ("New", "serving")


def test_people_of_a_tenant_find_no_cluster() -> None:
    cluster = make_cluster(kind="kubernetes", connection_reference="seoul")
    client = client_of(make_ana())

    assert client.get("/fleet/clusters/add").status_code == 403
    assert client.get(f"/fleet/clusters/{cluster.pk}/change").status_code == 404
    assert client.post(f"/fleet/clusters/{cluster.pk}/test").status_code == 404
