"""Presets and fits through the API."""

import pytest
from rest_framework.test import APIClient

from controlplane.serving.presets import presets
from tests.controlplane.serving.factories import make_accelerator_model
from tests.factories import make_api_client, make_ben, make_olga

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> APIClient:
    return make_api_client(make_olga())


def test_presets_are_listed_and_read_by_name(client: APIClient) -> None:
    listed = client.get("/api/v1/presets").json()["items"]
    one = client.get("/api/v1/presets/deepseek-r1").json()

    assert [row["slug"] for row in listed] == sorted(presets())
    assert one["shape"]["latent"]["kv_rank"] == 512
    assert one["weight_bytes"]["fp8"] > 670e9
    assert one["source"].startswith("AIConfigurator")
    assert client.get("/api/v1/presets/gpt-5").status_code == 404


def test_a_fit_is_told_in_figures_and_words(client: APIClient) -> None:
    make_accelerator_model("nvidia-h100-nvl")
    make_accelerator_model("amd-mi325x")
    query = "model=qwen3-32b&tensor_parallel=2&context_tokens=4096&concurrency=4"

    all_of_them = client.get(f"/api/v1/model-fit?{query}").json()["items"]
    [one] = client.get(f"/api/v1/model-fit?{query}&accelerator=amd-mi325x").json()["items"]

    assert len(all_of_them) == 2
    assert one["verdict"] == "fits"
    assert one["sentence"].startswith("Fits on 2: ")
    assert one["sequences"] * one["kv_bytes_per_sequence"] <= one["kv_bytes"]


@pytest.mark.parametrize(
    ("query", "status", "word"),
    [
        ("", 422, "model"),
        ("model=gpt-5", 400, "gpt-5"),
        ("model=qwen3-8b&accelerator=tpu", 400, "tpu"),
        ("model=qwen3-8b&tensor_parallel=0", 422, "tensor_parallel"),
        ("model=qwen3-8b&precision=int3", 422, "precision"),
        ("model=qwen3-8b&tp=2", 400, "tp"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(
    client: APIClient, query: str, status: int, word: str
) -> None:
    answer = client.get(f"/api/v1/model-fit?{query}")

    assert answer.status_code == status
    assert word in answer.text


def test_a_person_of_a_tenant_sees_neither_presets_nor_fits() -> None:
    make_accelerator_model("amd-mi325x")
    ben = make_api_client(make_ben())

    assert ben.get("/api/v1/presets").status_code == 403
    assert ben.get("/api/v1/model-fit?model=qwen3-8b").status_code == 403
