"""The page of findings: sources, filters, answers, queries."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from inventory.discovery.kubernetes import read_nodes
from inventory.models import Cluster, Discovery, Finding
from inventory.services import recording
from tests.controlplane.console.scene import Scene
from tests.inventory.discovery.cluster_objects import GPU, h100, node
from tests.inventory.factories import make_cluster, make_site
from tests.inventory.services.test_recording import make_h100

PAGE = "/fleet/findings"


def record(cluster: Cluster, *nodes: Any) -> None:
    found = read_nodes(nodes, [], seen_at=timezone.now())
    recording.record_looks(cluster_id=cluster.pk, found=found)


def busan() -> Cluster:
    """A cluster beside those of the scene."""
    return make_cluster(kind="kubernetes", slug="busan", site=make_site(slug="kr-busan"))


@pytest.fixture
def client(scene: Scene, client_of: Callable[..., Client]) -> Client:
    return client_of(scene.operator)


def test_a_finding_shows_both_values_and_each_fact_with_its_source(client: Client) -> None:
    row = make_h100("gpu-77", cluster=busan())
    record(row.cluster, h100("gpu-77", allocatable={GPU: "7"}))

    text = client.get(f"{PAGE}?q=gpu-77").content.decode()

    for words in (
        "devices that the cluster does not give out", "extended resource", "nvidia.com/gpu",
        "NVIDIA-H100-80GB-HBM3", "Kubernetes",
    ):  # fmt: skip
        assert words in text
    assert "There is nothing to take over" in text


def test_the_page_of_the_node_shows_what_the_cluster_says(client: Client) -> None:
    row = make_h100("gpu-77", cluster=busan())
    record(row.cluster, h100("gpu-77"))

    text = client.get(reverse("console:node", args=[row.pk]) + "?tab=hardware").content.decode()

    assert "What the cluster says" in text
    assert "extended resource" in text


def test_an_answer_needs_a_reason_and_comes_back_to_the_page(client: Client) -> None:
    row = make_h100("gpu-77", cluster=busan())
    record(row.cluster, h100("gpu-77", ready="False"))
    finding = Finding.objects.get(hostname="gpu-77")
    path = reverse("inventory:finding-answer", args=[finding.pk, "dismiss"])

    silent = client.post(path, {"next": PAGE}, follow=True)
    assert "Say why" in silent.content.decode()
    spoken = client.post(path, {"next": PAGE, "reason": "known"}, follow=True)

    finding.refresh_from_db()
    assert finding.state == "dismissed"
    assert "Finding about gpu-77: dismissed" in spoken.content.decode()


def test_accepting_takes_the_model_that_no_source_names(client: Client) -> None:
    cluster = busan()
    record(cluster, node("gaudi-9", capacity={"habana.ai/gaudi": "8"}))
    finding = Finding.objects.get(hostname="gaudi-9")
    path = reverse("inventory:finding-answer", args=[finding.pk, "accept"])

    refused = client.post(path, {"reason": "ours", "next": PAGE}, follow=True).content.decode()

    assert "no known model" in refused
    assert (
        client.post(reverse("inventory:finding-answer", args=[finding.pk, "x"])).status_code == 404
    )


def test_all_findings_of_a_cluster_and_a_kind_lead_to_an_operation(client: Client) -> None:
    cluster = busan()
    record(cluster, h100("gpu-a"), h100("gpu-b"))
    filters = f"?cluster={cluster.slug}&kind=unknown-node"

    assert "Accept 2 findings" in client.get(PAGE + filters).content.decode()
    assert "Accept 2 findings" not in client.get(PAGE).content.decode()
    response = client.post(
        reverse("inventory:findings-accept"),
        {"cluster": cluster.slug, "kind": "unknown-node", "reason": "ours"},
    )

    assert response.status_code == 302
    assert response["Location"].startswith("/operations/")


def test_a_choice_that_is_refused_comes_back_with_the_sentence(client: Client) -> None:
    response = client.post(
        reverse("inventory:findings-accept"),
        {"cluster": "nowhere", "kind": "missing", "reason": "ours"}, follow=True,
    )  # fmt: skip

    assert "None of the findings chosen is open" in response.content.decode()


def test_the_last_run_of_a_discovery_and_its_error_are_shown(client: Client) -> None:
    cluster = busan()
    Discovery.objects.create(cluster=cluster, error="The cluster did not answer.")

    text = client.get(PAGE).content.decode()

    assert "Discovery of busan" in text
    assert "The cluster did not answer. It was never listed." in text


def test_nothing_found_and_nothing_matching_have_their_own_words(client: Client) -> None:
    Finding.objects.all().delete()
    assert "Everything matches what was found" in client.get(PAGE).content.decode()

    record(busan(), h100("gpu-a"))
    text = client.get(f"{PAGE}?q=nobody").content.decode()
    assert "1 finding is open without filters" in text


def test_the_list_costs_the_same_queries_at_50_and_at_200_rows(client: Client) -> None:
    cluster = busan()

    def queries(count: int) -> int:
        record(cluster, *(h100(f"gpu-{number}") for number in range(count)))
        with CaptureQueriesContext(connection) as asked:
            client.get(f"{PAGE}?rows=200")
        return len(asked)

    few = queries(50)
    assert few == queries(200)
    assert few <= 12


def test_who_may_not_answer_sees_no_button(scene: Scene, client_of: Callable[..., Client]) -> None:
    record(busan(), h100("gpu-a"))

    text = client_of(scene.approver).get(PAGE).content.decode()

    assert "gpu-a" in text
    assert "Answer the finding" not in text
