"""Objects of a gateway put into a pool document."""

import pytest

from routing.core.document import PoolDocument, RewriteTarget
from routing.core.refusals import DocumentError
from routing.llmd.objects.effects import effects_of
from routing.llmd.objects.importing import Imported, put_into
from routing.llmd.objects.reading import read
from tests.routing.llmd.objects.samples import OBJECTIVES, POOL, REWRITES, together
from tests.routing.pool.builders import endpoint_dict, make_document

TWO_BASES = [{"name": "granite", "max_model_len": 100}, {"name": "phi", "max_model_len": 100}]


def imported(document: PoolDocument, *texts: str) -> Imported:
    return put_into(document, effects_of(read(together(*texts))))


def test_objectives_and_rewrites_become_those_of_the_objects() -> None:
    before = make_document(endpoint_dict("a"), objectives={"old": 3, "batch": -1}, version=4)

    found = imported(before, OBJECTIVES, REWRITES)

    assert found.document.version == 5
    assert dict(found.document.objectives) == {"batch": -5, "interactive": 10, "usual": 0}
    assert found.document.rewrites[1].targets == (
        RewriteTarget(model="granite", weight=90),
        RewriteTarget(model="granite-v2", weight=10),
    )
    changes = {change.pointer: (change.before, change.after) for change in found.changes}
    assert changes["/objectives/old"] == (3, None)
    assert changes["/objectives/batch"] == (-1, -5)
    assert changes["/objectives/usual"] == (None, 0)
    assert "/rewrites/1" in changes
    assert changes["/models/granite-v2"][1]["adapter_of"] == "granite"


def test_a_target_that_is_no_model_becomes_an_adapter_and_this_is_told() -> None:
    found = imported(make_document(endpoint_dict("a")), REWRITES)

    (note,) = [note for note in found.notes if note.kind == "adapted"]
    assert (note.subject, note.pointer) == ("granite-v2", "/rewrites/1/targets/1/model")
    model = found.document.models[1]
    assert (model.name, model.adapter_of, model.max_model_len) == ("granite-v2", "granite", 9216)


def test_with_several_bases_an_unknown_target_is_refused() -> None:
    with pytest.raises(DocumentError) as refused:
        imported(make_document(endpoint_dict("a"), models=TWO_BASES), REWRITES)

    assert refused.value.pointer == "/rewrites/1/targets/1/model"
    assert refused.value.allowed == ("granite", "phi")


def test_the_same_objects_again_change_nothing() -> None:
    once = imported(make_document(endpoint_dict("a")), OBJECTIVES, REWRITES)

    again = imported(once.document, OBJECTIVES, REWRITES)

    assert again.changes == ()
    assert again.document == once.document


def test_endpoints_that_the_pool_does_not_count_are_told() -> None:
    document = make_document(
        endpoint_dict("a", labels={"app": "vllm"}),
        endpoint_dict("b", labels={"app": "sglang"}),
        endpoint_dict("c"),
    )
    text = POOL.replace("[{number: 8000}, {number: 8001}]", "[{number: 9000}]")

    found = imported(document, text)

    told = [(note.pointer, note.subject) for note in found.notes]
    assert ("/endpoints/b", "selector") in told
    assert ("/endpoints/c", "targetPorts") in told
    assert ("/endpoints/a", "selector") not in told
