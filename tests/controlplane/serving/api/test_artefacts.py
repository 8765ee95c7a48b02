"""Files of models through the API."""

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from controlplane.serving.models import ArtefactPresence
from tests.controlplane.serving.factories import (
    make_artefact,
    make_fleet_node,
    make_pool,
    make_serving_model,
)
from tests.factories import make_api_client, make_ben, make_olga

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> APIClient:
    return make_api_client(make_olga())


def post(client: APIClient, path: str, body: Any) -> Any:
    headers = {"Idempotency-Key": str(uuid4())}
    return client.post(f"/api/v1/{path}", body, format="json", headers=headers)


def wish(**overrides: Any) -> dict[str, Any]:
    model = make_serving_model()
    return {
        "slug": "granite-files", "model": model.slug, "kind": "node-path",
        "uri": "/srv/models/granite", "sha256": "a" * 64, "size_bytes": 17 * 10**9,
        "licence": "Apache-2.0", "gated": False,
    } | overrides  # fmt: skip


def test_files_are_added_changed_and_retired(client: APIClient) -> None:
    added = post(client, "model-artefacts", wish())
    changed = client.patch(
        "/api/v1/model-artefacts/granite-files",
        {"sha256": "b" * 64, "change_reason": "typo"}, format="json",
    )  # fmt: skip
    retired = post(client, "model-artefacts/granite-files/retire", {"change_reason": "old"})

    assert added.status_code == 201
    assert added.json()["pools"] == []
    assert changed.json()["sha256"] == "b" * 64
    assert retired.json()["state"] == "retired"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"uri": "models"}, 422, "artefact-refused"),
        ({"sha256": "xyz"}, 422, "validation-failed"),
        ({"size_bytes": 0}, 422, "validation-failed"),
        ({"kind": "ftp"}, 422, "validation-failed"),
        ({"model": "gpt-5"}, 422, "validation-failed"),
        ({"token": "x"}, 422, "validation-failed"),
    ],
)
def test_what_makes_no_sense_is_refused(
    client: APIClient, body: dict[str, Any], status: int, code: str
) -> None:
    answer = post(client, "model-artefacts", wish(**body))

    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_pool_is_given_files_and_shows_them(client: APIClient) -> None:
    pool, files = make_pool(), make_artefact(slug="granite-files")
    path = f"pools/{pool.slug}/artefact"

    given = post(client, path, {"artefact": "granite-files", "change_reason": "ours"})
    unknown = post(client, path, {"artefact": "nothing", "change_reason": "ours"})
    held = post(client, "model-artefacts/granite-files/retire", {"change_reason": "old"})
    taken = post(client, path, {"artefact": None, "change_reason": "back"})

    assert given.json()["spec"]["artefact"] == files.slug
    assert unknown.status_code == 422
    assert (held.status_code, held.json()["code"]) == (409, "artefact-in-use")
    assert taken.json()["spec"]["artefact"] is None


def test_presences_are_listed_by_artefact_and_state(client: APIClient) -> None:
    files, node = make_artefact(), make_fleet_node()
    ArtefactPresence.objects.create(artefact=files, node=node, state="wrong", sha256="c" * 64)

    found = client.get(f"/api/v1/artefact-presences?artefact={files.slug}&state=wrong").json()
    none = client.get("/api/v1/artefact-presences?state=present").json()

    assert [row["node"] for row in found["items"]] == [node.hostname]
    assert none["items"] == []


@pytest.mark.parametrize("path", ["model-artefacts", "artefact-presences"])
def test_a_list_takes_as_many_queries_for_many_rows(client: APIClient, path: str) -> None:
    node = make_fleet_node()
    counts = []
    for more in (2, 8):
        for _ in range(more):
            ArtefactPresence.objects.create(artefact=make_artefact(), node=node)
        with CaptureQueriesContext(
            connection,
        ) as seen:
            client.get(f"/api/v1/{path}?limit=50")
        counts.append(len(seen))

    assert counts[0] == counts[1]


def test_a_person_of_a_tenant_sees_and_changes_nothing() -> None:
    files = make_artefact()
    ben = make_api_client(make_ben())

    assert ben.get("/api/v1/model-artefacts").status_code == 403
    assert ben.get("/api/v1/artefact-presences").status_code == 403
    answer = post(ben, f"model-artefacts/{files.slug}/retire", {"change_reason": "x"})
    assert answer.status_code == 404
