"""Candidates of the select step, and the SLO of a pool."""

from typing import Any

from django.http import QueryDict

from controlplane.serving.forms import SloForm, candidates
from controlplane.serving.models import Pool
from tests.controlplane.console.scene import make_scene


def test_candidates_show_roles_and_what_is_in_the_way(db: None) -> None:
    scene = make_scene()
    scene.nodes[4].state = "cordoned"
    scene.nodes[4].save()

    rows = {row.node.hostname: row for row in candidates(scene.operator)}

    assert rows["gpu-07"].roles == {"decode": 8}
    assert rows["gpu-07"].pools == {"granite-chat"}
    assert (rows["gpu-07"].obstacle, rows["npu-21"].obstacle) == ("", "cordoned")
    assert rows["npu-31"].roles == {}


def test_people_of_a_tenant_have_no_candidates(db: None) -> None:
    assert candidates(make_scene().tenant_user) == []


def changes(pool: Pool, **sent: Any) -> dict[str, Any]:
    query = QueryDict(mutable=True)
    query.update({"reason": "x", **sent})
    form = SloForm(query, pool=pool)

    assert form.is_valid(), form.errors
    return form.changes()


def test_an_slo_form_shows_what_is_stated() -> None:
    pool = Pool(slo_ttft_p95_seconds=1.5, admission={"queue_requests": 0})

    form = SloForm(None, pool=pool)

    assert form["slo_ttft_p95_seconds"].value() == 1.5
    assert form["queue_requests"].value() == 0
    assert form["queue_seconds"].value() is None


def test_an_empty_field_states_nothing_and_zero_states_zero() -> None:
    pool = Pool(admission={"queue_requests": 5, "evict_sheddable": True, "bands": []})

    assert changes(pool, queue_requests="0") == {
        "slo_ttft_p95_seconds": None,
        "slo_tpot_p95_seconds": None,
        "admission": {"queue_requests": 0, "bands": []},
    }
    assert changes(pool, evict_sheddable="on")["admission"] == {
        "evict_sheddable": True, "bands": [],
    }  # fmt: skip
