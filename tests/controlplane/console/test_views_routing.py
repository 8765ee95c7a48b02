"""Routing pages: why a request went where it went, for whom, and what a replay shows."""

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.decisions.models import Decision, ShadowHour
from controlplane.tenancy.models import Role
from tests.controlplane.console.scene import Scene
from tests.controlplane.console.test_views_pages import address
from tests.controlplane.decisions.conftest import LiveRouter, live
from tests.factories import make_olga, make_tenant, make_user
from tests.routing.servers.scripted import SECRET

__all__ = ["live"]
Browser = Callable[..., Client]
URL = "/routing/decisions"


def text_of(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200, path
    return response.content.decode()


def test_live_decisions_show_what_was_expected_and_what_came(
    scene: Scene, client_of: Browser
) -> None:
    text = text_of(client_of(scene.operator), URL)

    assert "1 of 50 requests is recorded" in text
    assert "404 model-not-found" in text
    assert "0.09" in text
    assert f"{scene.decision.hit_tokens:,} of {scene.decision.prompt_tokens:,} held" in text
    assert "3 decisions came faster than they are recorded" in text


def test_decisions_are_filtered_and_an_empty_filter_says_so(
    scene: Scene, client_of: Browser
) -> None:
    client = client_of(scene.operator)

    failed = text_of(client, f"{URL}?outcome=error&tenant=narae-health")
    none = text_of(client, f"{URL}?tenant=nobody")

    assert failed.count('id="decision-') == 1
    assert "No recorded decision fits the filter" in none


def test_an_unchanged_list_is_not_sent_again(scene: Scene, client_of: Browser) -> None:
    client = client_of(scene.operator)
    tag = re.search(r'"If-None-Match": "(\w+)"', text_of(client, URL))
    assert tag is not None
    headers = {"HX-Request": "true", "If-None-Match": tag[1]}

    same = client.get(URL, headers=headers)
    Decision.objects.filter(pk=scene.decision.pk).update(updated_at=timezone.now())
    changed = client.get(URL, headers=headers)

    assert (same.status_code, changed.status_code) == (304, 200)


@pytest.mark.lesson("T01")
def test_a_decision_is_explained_term_by_term_in_the_readers_language(
    scene: Scene, client_of: Browser
) -> None:
    path = address(scene, "decision")

    english = text_of(client_of(scene.operator), path)
    korean = text_of(client_of(scene.operator, "ko"), path)

    assert re.search(r"<b>gpu-kr-\d+ .*prompt tokens\.</b>", english)
    assert "Shadow policy round-robin" in english
    assert "1 draining (state)" in english
    assert english.count('<svg class="bar"') == 3
    assert "디코드" in korean
    assert "선택" in korean or "유지" in korean


@pytest.mark.lesson("W10")
def test_the_prefixes_that_endpoints_are_believed_to_hold_are_on_the_page(
    scene: Scene, client_of: Browser
) -> None:
    text = text_of(client_of(scene.operator), URL)

    assert "Which endpoint holds which prefix" in text
    assert scene.decision.prefix in text
    assert f'<td class="mono">{scene.decision.destination}</td>' in text


def test_a_replay_stands_beside_the_record_with_signs_where_it_differs(
    scene: Scene, client_of: Browser
) -> None:
    client, path = client_of(scene.operator), address(scene, "decision")

    same = text_of(client, f"{path}?replay=1")
    other = text_of(client, f"{path}?replay=1&remove={scene.decision.destination}")
    wrong = text_of(client, f"{path}?replay=1&document_version=7")

    assert "≠" not in same
    assert "≠ changed" in other
    assert "has no document of version 7" in wrong


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"candidates": 7, "refusal": "x", "predicted": [1]}, id="types"),
        pytest.param({"candidates": [{"endpoint": "a", "terms": 1}, 5, {}]}, id="candidates"),
        pytest.param({"rejected": ["a"], "removed": {"state": "many"}, "degraded": 3}, id="rules"),
        pytest.param({"inputs": {"endpoints": 1}, "document_version": "x"}, id="replay"),
        pytest.param({"pool": "<script>", "fallbacks": [{}], "shadows": [None, 1]}, id="names"),
        pytest.param({"destination": "x" * 1_000_000, "margin_seconds": 10**300}, id="huge"),
    ],
)
def test_a_record_that_no_router_writes_is_shown_as_far_as_it_goes(
    scene: Scene, client_of: Browser, changed: dict[str, object]
) -> None:
    record = scene.decision.record | changed
    Decision.objects.filter(pk=scene.decision.pk).update(record=record)
    client, path = client_of(scene.operator), address(scene, "decision")

    text = text_of(client, path)
    text_of(client, f"{path}?replay=1")

    assert "<script>" not in text
    assert len(text) < 200_000


def test_a_record_without_inputs_is_read_and_not_replayed(scene: Scene, client_of: Browser) -> None:
    record = scene.decision.record | {"inputs": None, "candidates": None}
    Decision.objects.filter(pk=scene.decision.pk).update(record=record)

    text = text_of(client_of(scene.operator), address(scene, "decision"))

    assert "kept without its inputs" in text
    assert "The record lists no candidate" in text


def test_people_of_a_tenant_see_their_own_decisions_without_the_fleet(
    scene: Scene, client_of: Browser
) -> None:
    bank = make_user("bo", Role.TENANT_VIEWER, tenant=make_tenant(slug="hanbit-bank"))
    client = client_of(bank)

    listed, detail = text_of(client, URL), text_of(client, address(scene, "decision"))
    other = Decision.objects.filter(tenant="narae-health").first()

    assert listed.count('id="decision-') == 1
    for text in (listed, detail):
        assert "narae-health" not in text
        assert str(scene.decision.runner_up) not in text
    assert client.get(f"{URL}/{other.pk if other else ''}").status_code == 404
    assert client.get("/routing/test").status_code == 403


def test_the_tester_explains_a_request_of_sizes(live: LiveRouter, client_of: Browser) -> None:
    client = client_of(make_olga())
    asked = {"pool": "main", "tenant": "t", "prompt_tokens": "3000", "act": "explain"}

    told = client.post("/routing/test", asked | {"force": "b"})
    empty = client.post("/routing/test", asked | {"prompt_tokens": ""})
    unknown = client.post("/routing/test", asked | {"like": "nobody"})

    assert b"b was chosen because the caller asked for it" in told.content
    assert not live.stage.engines["b"].requests
    assert empty.status_code == unknown.status_code == 422
    assert b"does not remember decision" in unknown.content


def test_the_tester_sends_with_a_key_and_shows_neither_key_nor_more_than_it_must(
    live: LiveRouter, client_of: Browser
) -> None:
    client = client_of(make_olga())
    sent = {"pool": "main", "prompt": "a very secret word", "key": SECRET, "act": "send"}

    told = client.post("/routing/test", sent)
    keyless = client.post("/routing/test", sent | {"key": ""})

    assert told.status_code == 200
    assert b"from a" in told.content or b"from b" in told.content
    assert SECRET.encode() not in told.content
    assert keyless.status_code == 422


def test_what_policies_would_have_done_for_an_observed_gateway_is_on_the_page(
    scene: Scene, client_of: Browser
) -> None:
    ShadowHour.objects.update(live="gateway")

    page = text_of(client_of(scene.operator), URL)

    assert "an observed gateway" in page
    assert "what each policy would have done" in page


def test_a_page_without_decisions_offers_the_next_step(db: None, client_of: Browser) -> None:
    text = text_of(client_of(make_olga()), URL)

    assert "No decision recorded yet. Send a test request." in text
