"""What objects of a gateway mean for one pool."""

import pytest

from routing.core.refusals import DocumentError
from routing.core.rewriting import RewriteRules
from routing.llmd.objects.effects import Effects, effects_of
from routing.llmd.objects.reading import read
from tests.routing.llmd.objects.samples import OBJECTIVES, POOL, REWRITES, ROUTE, together
from tests.routing.pool.builders import endpoint_dict, make_document


def effects(*texts: str, pool: str | None = None) -> Effects:
    return effects_of(read(together(*texts)), pool=pool)


def rewrite(name: str, created: str | None, *models: str, to: str) -> str:
    when = f", creationTimestamp: {created}" if created else ""
    matches = ", ".join(f"{{model: {{value: {model}}}}}" for model in models)
    return f"""
apiVersion: llm-d.ai/v1alpha2
kind: InferenceModelRewrite
metadata: {{name: {name}{when}}}
spec:
  poolRef: {{name: llama}}
  rules: [{{matches: [{matches}], targets: [{{modelRewrite: {to}}}]}}]
"""


def served(found: Effects, *names: str) -> list[str]:
    """Models that names are sent to by the rules, in a document of them."""
    targets = {target.model for rule in found.rewrites for target in rule.targets}
    models = [{"name": name, "max_model_len": 100} for name in sorted(targets)]
    document = make_document(
        endpoint_dict("a"),
        models=models,
        rewrites=[
            {"models": rule.models, "targets": [{"model": one.model} for one in rule.targets]}
            for rule in found.rewrites
        ],
    )
    rules = RewriteRules.of(document)
    told = [rules.rule_for(name) for name in names]
    return [rule.targets[0].model if rule else "-" for rule in told]


def test_an_objective_without_priority_is_zero() -> None:
    assert effects(OBJECTIVES).objectives == {"batch": -5, "interactive": 10, "usual": 0}


def test_a_pool_tells_ports_labels_and_failure_mode() -> None:
    found = effects(POOL)

    assert found.target_ports == (8000, 8001)
    assert found.match_labels == {"app": "vllm"}
    assert found.failure_mode == "FailOpen"
    without = effects(OBJECTIVES)
    assert (without.target_ports, without.match_labels, without.failure_mode) == (None, None, None)


def test_a_rule_for_the_name_beats_an_older_one_for_every_name() -> None:
    found = effects(REWRITES)

    assert [rule.models for rule in found.rewrites] == [(), ("chat", "assistant")]
    assert [target.weight for target in found.rewrites[1].targets] == [90, 10]
    assert served(found, "chat", "else") == ["granite", "granite"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_oldest_object_counts_and_unapplied_ones_come_last(order: tuple[int, ...]) -> None:
    texts = [
        rewrite("old", "2026-01-01T00:00:00Z", "chat", to="m-old"),
        rewrite("new", "2026-06-01T00:00:00Z", "chat", to="m-new"),
        rewrite("draft", None, "chat", "draft-only", to="m-draft"),
    ]

    found = effects(*(texts[place] for place in order))

    assert served(found, "chat", "draft-only") == ["m-old", "m-draft"]


def test_of_equal_age_the_name_decides() -> None:
    same = "2026-01-01T00:00:00Z"
    texts = [rewrite("b", same, "chat", to="m-b"), rewrite("a", same, "chat", to="m-a")]

    assert served(effects(*texts), "chat") == ["m-a"]


def test_what_a_gateway_does_with_a_route_is_told() -> None:
    told = {note.subject: note.message for note in effects(POOL, ROUTE).notes}

    assert "75.0%" in told["HTTPRoute models"]
    assert "300s" in told["timeouts.request"]


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ("{kind: Service, name: other, weight: 9}", "25.0%"),
        ("{group: example.org, kind: InferencePool, name: llama, weight: 9}", "25.0%"),
        ("{group: inference.networking.k8s.io, kind: InferencePool, name: llama}", None),
    ],
)
def test_the_share_of_a_pool_is_of_all_that_a_route_sends(other: str, told: str | None) -> None:
    second = "{group: inference.networking.k8s.io, kind: InferencePool, name: other, weight: 1}"
    assert second in ROUTE
    notes = {
        note.subject: note.message for note in effects(POOL, ROUTE.replace(second, other)).notes
    }

    assert (told or "") in notes.get("HTTPRoute models", "")
    assert ("HTTPRoute models" in notes) == (told is not None)


def test_a_route_without_a_limit_tells_nothing() -> None:
    free = ROUTE.replace("300s", "0s").replace("name: other, weight: 1", "name: other, weight: 0")

    assert "timeouts.request" not in {note.subject for note in effects(POOL, free).notes}


def test_objects_of_another_pool_are_left_out_and_told() -> None:
    other = OBJECTIVES.replace("llama", "phi")

    found = effects(POOL, other, pool="llama")

    assert found.objectives == {}
    assert [note.message for note in found.notes if note.kind == "kept"] == ["is for pool phi"] * 3


def test_several_pools_need_a_name() -> None:
    with pytest.raises(DocumentError) as several:
        effects(POOL, OBJECTIVES.replace("llama", "phi"))
    with pytest.raises(DocumentError) as unknown:
        effects(POOL, pool="nobody")
    with pytest.raises(DocumentError) as none:
        effects(ROUTE)

    assert several.value.allowed == (*unknown.value.allowed, "phi") == ("llama", "phi")
    assert "about an InferencePool" in none.value.message


@pytest.mark.parametrize("text", [POOL, OBJECTIVES])
def test_an_object_stands_once(text: str) -> None:
    with pytest.raises(DocumentError, match="twice"):
        effects(text, text)


def test_what_engines_do_not_speak_and_what_gateways_demand_is_told() -> None:
    text = POOL.replace("appProtocol: http", "appProtocol: kubernetes.io/h2c")
    text = "\n".join(line for line in text.splitlines() if "endpointPickerRef" not in line)

    told = {note.subject for note in effects(text).notes}

    assert told == {"kubernetes.io/h2c", "endpointPickerRef"}
