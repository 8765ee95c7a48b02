"""Pages of models: what fits where, in words and figures, and where files are."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from controlplane.serving import services
from controlplane.serving.models import ArtefactPresence
from tests.controlplane.console.scene import Scene
from tests.controlplane.serving.factories import make_artefact

PAGE = "/serving/models"


def test_models_and_presets_are_listed(scene: Scene, client_of: Callable[..., Client]) -> None:
    text = client_of(scene.operator).get(PAGE).content.decode()

    assert "granite-4.1-8b" in text
    assert f'href="{PAGE}/exaone-4.0-32b"' in text
    assert "upstage/Solar-Open-100B" in text


def test_a_model_says_where_it_fits_in_words_and_figures(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    client = client_of(scene.operator)

    usual = client.get(f"{PAGE}/granite-4.1-8b").content.decode()
    much = client.get(
        f"{PAGE}/granite-4.1-8b?context_tokens=131072&concurrency=500"
    ).content.decode()

    assert "sequences of 8192 tokens at a time" in usual
    assert "Tight on 1" in much
    assert "131072" in much


@pytest.mark.parametrize(
    "query", ["tensor_parallel=0", "tensor_parallel=x", "context_tokens=9999999999999", "nothing=1"]
)
def test_a_load_that_makes_no_sense_shows_the_usual_one(
    scene: Scene, client_of: Callable[..., Client], query: str
) -> None:
    answer = client_of(scene.operator).get(f"{PAGE}/granite-4.1-8b?{query}")

    assert answer.status_code == 200
    assert "sequences of 8192 tokens at a time" in answer.content.decode()


def test_a_preset_has_a_page_before_it_is_in_the_catalogue(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    client = client_of(scene.operator)

    text = client.get(f"{PAGE}/deepseek-r1").content.decode()

    assert "preset, not in the catalogue" in text
    assert "AIConfigurator" in text
    assert client.get(f"{PAGE}/gpt-5").status_code == 404


def test_files_are_shown_with_the_nodes_on_which_they_are(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    [model] = services.load_catalogue("granite-4.1-8b")
    files = make_artefact(model=model, sha256="a" * 64, licence="Apache-2.0")
    ArtefactPresence.objects.create(
        artefact=files, node=scene.nodes[0], state="wrong", detail="SHA-256 differs."
    )

    text = client_of(scene.operator).get(f"{PAGE}/granite-4.1-8b").content.decode()

    assert files.uri in text
    assert "other files" in text
    assert scene.nodes[0].hostname in text
    assert "aaaaaaaaaaaa…" in text


def test_the_pages_speak_korean(scene: Scene, client_of: Callable[..., Client]) -> None:
    text = client_of(scene.operator, "ko").get(f"{PAGE}/granite-4.1-8b").content.decode()

    assert "맞는 곳" in text
    assert "토큰 시퀀스" in text


def test_a_person_of_a_tenant_sees_no_model(scene: Scene, client_of: Callable[..., Client]) -> None:
    ben = client_of(scene.tenant_user)

    assert ben.get(PAGE).status_code == 403
    assert ben.get(f"{PAGE}/granite-4.1-8b").status_code == 403


def test_more_models_take_no_more_queries(scene: Scene, client_of: Callable[..., Client]) -> None:
    client, counts = client_of(scene.operator), []
    for slugs in (["qwen3-8b"], ["qwen3-14b", "qwen3-32b", "llama-3.1-8b", "sarvam-30b"]):
        for model in services.load_catalogue(*slugs):
            make_artefact(model=model)
        with CaptureQueriesContext(connection) as seen:
            client.get(PAGE)
        counts.append(len(seen))

    assert counts[0] == counts[1]
