"""Objects of a pool over REST: YAML, read only, refused with the field."""

import itertools
import json
from typing import Any

import pytest
import yaml
from rest_framework.test import APIClient

from tests.controlplane.serving.factories import make_assigned, make_fleet_node, make_pool
from tests.factories import make_api_client, make_ben, make_olga

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]

CONTAINERS = {"namespace": "llm", "images": {"amd": "registry.example/vllm:1"}}
_keys = itertools.count(1)


@pytest.fixture
def client() -> APIClient:
    return make_api_client(make_olga())


def change(client: APIClient, slug: str, containers: Any) -> Any:
    return client.post(
        f"/api/v1/pools/{slug}/containers",
        {"containers": containers, "change_reason": "images"}, format="json",
        headers={"Idempotency-Key": f"export-test-{next(_keys):08d}"},
    )  # fmt: skip


def test_a_pool_is_written_as_yaml_under_its_name(client: APIClient) -> None:
    pool = make_pool(engine="vllm", containers=CONTAINERS)
    make_assigned(pool, make_fleet_node())

    answer = client.get(f"/api/v1/pools/{pool.slug}/manifests?renderer=plain")

    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("application/yaml")
    kinds = [one["kind"] for one in yaml.safe_load_all(answer.content)]
    assert kinds == ["Service", "PodDisruptionBudget", "Deployment"]


@pytest.mark.parametrize("form", ["application/yaml", "application/json", "*/*"])
def test_a_problem_reads_as_json_whatever_is_accepted(client: APIClient, form: str) -> None:
    pool = make_pool(containers=CONTAINERS)

    answer = client.get(f"/api/v1/pools/{pool.slug}/manifests", headers={"Accept": form})

    assert answer.status_code == 422
    assert json.loads(answer.content)["pointer"] == "assignments"


def test_the_tag_follows_what_is_written(client: APIClient) -> None:
    pool = make_pool(engine="vllm", containers=CONTAINERS)
    make_assigned(pool, make_fleet_node())
    address = f"/api/v1/pools/{pool.slug}/manifests"
    first = client.get(address)

    same = client.get(address, headers={"If-None-Match": first["ETag"]})
    make_assigned(pool, make_fleet_node())
    other = client.get(address, headers={"If-None-Match": first["ETag"]})

    assert (same.status_code, other.status_code) == (304, 200)


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("renderer=helm", 400, "invalid-parameter"),
        ("renderer=kserve", 422, "manifests-refused"),
        ("x=1", 400, "unknown-parameter"),
    ],
)
def test_what_cannot_be_written_is_a_problem(
    client: APIClient, query: str, status: int, code: str
) -> None:
    pool = make_pool(engine="sglang", containers=CONTAINERS)
    make_assigned(pool, make_fleet_node())

    answer = client.get(f"/api/v1/pools/{pool.slug}/manifests?{query}")

    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_ben_sees_nothing_of_it() -> None:
    pool = make_pool(containers=CONTAINERS)

    answer = make_api_client(make_ben()).get(f"/api/v1/pools/{pool.slug}/manifests")

    assert answer.status_code in {403, 404}


def test_settings_of_containers_are_changed_with_a_reason(client: APIClient) -> None:
    pool = make_pool()

    answer = change(client, pool.slug, CONTAINERS)

    assert answer.status_code == 200, answer.json()
    assert answer.json()["spec"]["containers"] == CONTAINERS


def test_settings_that_no_cluster_takes_are_refused_with_the_field(client: APIClient) -> None:
    pool = make_pool(containers=CONTAINERS)

    answer = change(client, pool.slug, {"namespace": "llm", "imagse": {}})

    assert (answer.status_code, answer.json()["code"]) == (422, "containers-refused")
    assert "imagse" in answer.json()["detail"]
    pool.refresh_from_db()
    assert pool.containers == CONTAINERS
