"""A router whose usage is held up goes on when somebody of finance says so."""

from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from controlplane.audit.models import AuditEntry
from controlplane.metering import services
from controlplane.metering.models import RouterProgress, SegmentRefusal
from tests.controlplane.metering.rows import make_event, make_events, make_segment
from tests.factories import make_api_client, make_ben, make_olga, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


def post(user: Any, path: str, body: dict[str, Any]) -> Any:
    return make_api_client(user).post(
        f"/api/v1/{path}", body, format="json", headers={"Idempotency-Key": str(uuid4())}
    )


def make_refusal() -> SegmentRefusal:
    """Events 1 to 5 are stored; 5 and 6 come again, and 5 is another."""
    services.ingest_segment(make_segment(make_events(1, 5)))
    services.ingest_segment(make_segment([make_event(5, completion_tokens=999), make_event(6)]))
    return SegmentRefusal.objects.get()


def test_a_refused_segment_is_seen_with_its_reason_and_skipped_with_one() -> None:
    finance, refusal = make_user(None, "finance"), make_refusal()

    (seen,) = make_api_client(finance).get("/api/v1/usage-refusals").json()["items"]
    unreasoned = post(finance, f"usage-refusals/{refusal.pk}/skip", {})
    skipped = post(finance, f"usage-refusals/{refusal.pk}/skip", {"change_reason": "bad disk"})

    assert (seen["reason"], seen["first_sequence"]) == ("conflict", 5)
    assert (unreasoned.status_code, skipped.status_code) == (422, 200)
    assert (skipped.json()["last_sequence"], skipped.json()["missing_events"]) == (6, 1)
    assert AuditEntry.objects.get(action="segment.skip").reason == "bad disk"


def test_a_router_that_is_gone_is_declared_lost_once() -> None:
    RouterProgress.objects.create(router="r1", last_error="No answer.", pulled_at=timezone.now())
    finance, path = make_user(None, "finance"), "usage-routers/r1/declare-lost"

    first = post(finance, path, {"change_reason": "burnt"}).json()
    again = post(finance, path, {"change_reason": "really"}).json()

    assert first["lost_reason"] == "burnt"
    assert (again["lost_at"], again["lost_reason"]) == (first["lost_at"], "burnt")


@pytest.mark.parametrize("make_actor", [make_ben, make_olga])
def test_nobody_else_sees_or_decides_it(make_actor: Any) -> None:
    refusal, actor = make_refusal(), make_actor()

    for path in ("usage-refusals", "usage-routers"):
        assert make_api_client(actor).get(f"/api/v1/{path}").status_code == 403
    answers = [
        post(actor, f"usage-refusals/{refusal.pk}/skip", {"change_reason": "x"}),
        post(actor, "usage-routers/r1/declare-lost", {"change_reason": "x"}),
    ]

    assert [answer.status_code for answer in answers] == [404, 404]
    assert RouterProgress.objects.get().missing_events == 0
