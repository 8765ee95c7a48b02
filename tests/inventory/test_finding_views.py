"""Answers to findings in the console: only known ones, only by POST, only of what one may see."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from inventory.models import Finding
from inventory.services import record_observation
from tests.factories import make_ben, make_olga
from tests.inventory.factories import found_node, make_node

pytestmark = pytest.mark.django_db


def finding() -> Finding:
    node = make_node(accelerators=1)
    found = found_node(node, accelerators=(), seen_at=timezone.now())
    record_observation(cluster_id=node.cluster_id, found=found)
    return Finding.objects.get()


def client_of(user: object) -> Client:
    client = Client()
    client.force_login(user)  # type: ignore[arg-type]
    return client


@pytest.mark.parametrize(
    ("answer", "state"),
    [("accept", "accepted"), ("override", "overridden"), ("dismiss", "dismissed")],
)
def test_each_answer_closes_the_finding_with_its_reason(answer: str, state: str) -> None:
    found = finding()
    path = reverse("inventory:finding-answer", args=[found.pk, answer])

    response = client_of(make_olga()).post(path, {"reason": "seen", "next": "//evil.example"})

    found.refresh_from_db()
    assert (found.state, found.reason) == (state, "seen")
    assert response["Location"] == "/fleet/findings"


def test_an_answer_by_get_an_unknown_answer_and_ben_change_nothing() -> None:
    found = finding()
    path = reverse("inventory:finding-answer", args=[found.pk, "accept"])

    assert client_of(make_olga()).get(path).status_code == 405
    other = reverse("inventory:finding-answer", args=[found.pk, "delete"])
    assert client_of(make_olga()).post(other, {"reason": "x"}).status_code == 404
    assert client_of(make_ben()).post(path, {"reason": "x"}).status_code == 404
    found.refresh_from_db()
    assert found.state == "open"
