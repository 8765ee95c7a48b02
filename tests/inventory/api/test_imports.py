"""Imports over REST: CSV in, verdicts out, all or nothing."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from inventory.api import imports
from inventory.models import ImportRun, Node
from tests.factories import make_api_client, make_ben, make_olga
from tests.inventory.factories import make_model

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]

HEADER = "site,country,cluster,cluster_kind,hostname,vendor,model,accelerators"
GOOD = f"{HEADER}\nkr-1,KR,seoul-1,static,gpu-1,amd,amd-mi325x,2\n".encode()
BAD = GOOD + b"kr-1,KR,seoul-1,static,gpu-2,acme,amd-mi325x,0\n"


@pytest.fixture
def client() -> APIClient:
    make_model()
    return make_api_client(make_olga())


def send(client: APIClient, content: bytes, query: str = "", **more: Any) -> Any:
    headers = {"Idempotency-Key": "key-of-this-file"}
    return client.post(
        f"/api/v1/imports{query}", content, content_type="text/csv", headers=headers, **more
    )


def test_a_file_is_stored_whole(client: APIClient) -> None:
    response = send(client, GOOD, "?file_name=seoul.csv")

    body = response.json()
    assert (response.status_code, body["state"], body["file_name"]) == (
        201, "applied", "seoul.csv",
    )  # fmt: skip
    assert body["created"] == {"sites": 1, "clusters": 1, "nodes": 1, "accelerators": 2}
    assert Node.objects.get().hostname == "gpu-1"


def test_the_same_delivery_again_gives_the_same_answer(client: APIClient) -> None:
    first = send(client, GOOD)
    second = send(client, GOOD)

    assert first.json() == second.json()
    assert (ImportRun.objects.count(), Node.objects.count()) == (1, 1)


def test_a_dry_run_says_every_verdict_and_stores_nothing(client: APIClient) -> None:
    response = send(client, BAD, "?dry_run=true")

    body = response.json()["result"]
    assert (response.status_code, body["state"], body["dry_run"]) == (200, "refused", True)
    assert [(error["row"], error["column"], error["code"]) for error in body["errors"]] == [
        (3, "accelerators", "no-accelerators"),
    ]  # fmt: skip
    assert not Node.objects.exists()


def test_a_wrong_file_is_a_problem_with_its_rows(client: APIClient) -> None:
    response = send(client, BAD)

    body = response.json()
    assert (response.status_code, body["code"], body["count"]) == (422, "import-refused", 1)
    assert body["errors"][0]["row"] == 3
    assert not Node.objects.exists()


def test_an_empty_body_and_json_are_refused(client: APIClient) -> None:
    assert send(client, b"").json()["code"] == "import-refused"
    json = client.post(
        "/api/v1/imports", {}, format="json", headers={"Idempotency-Key": "key-of-json"}
    )
    assert (json.status_code, json.json()["code"]) == (415, "unsupported-media-type")
    assert json.json()["hint"] == "Allowed: text/csv."


def test_a_body_over_the_limit_is_413(client: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "MOST_BYTES", 1000)

    response = send(client, b"x" * 1001)

    assert (response.status_code, response.json()["code"]) == (413, "import-too-large")


def test_a_file_above_the_limit_of_json_bodies_comes_in(client: APIClient) -> None:
    padding = b"\n" * (2 * 1024 * 1024)

    assert send(client, GOOD + padding).status_code == 201


def test_runs_are_listed_in_constant_queries(client: APIClient) -> None:
    def queries_for(count: int) -> int:
        ImportRun.objects.bulk_create(
            ImportRun(sha256="0" * 64, state="checked", dry_run=True, rows=0)
            for _ in range(count - ImportRun.objects.count())
        )
        with CaptureQueriesContext(connection) as queries:
            body = client.get("/api/v1/imports?page_size=1000").json()
        assert len(body["items"]) == count
        return len(queries)

    client.get("/api/v1/imports")
    assert queries_for(50) == queries_for(200)


def test_ben_imports_nothing_and_sees_no_run(client: APIClient) -> None:
    send(client, GOOD)
    ben = make_api_client(make_ben())

    assert send(ben, GOOD).status_code == 403
    assert ben.get("/api/v1/imports").status_code == 403
