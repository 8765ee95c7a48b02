"""What a configuration is here, and that every part of it is accounted for."""

import json
from pathlib import Path

import msgspec
import pytest

from routing.core.document import DocumentError, Policy, parse_document
from routing.llmd.conversion import convert
from routing.pool import policy as policies
from tests.routing.llmd.test_reading import HEAD, SAMPLES, sample
from tests.routing.pool.builders import document_dict, endpoint_dict, make_request, make_router


def scorers(policy: Policy, name: str = "default") -> list[tuple[str, float]]:
    profile = next(profile for profile in policy.profiles if profile.name == name)
    return [(plugin.type, plugin.weight) for plugin in profile.plugins]


DEFAULT = [
    ("queue-scorer", 2),
    ("kv-cache-utilization-scorer", 2),
    ("prefix-cache-scorer", 3),
]


@pytest.mark.parametrize("text", ["", HEAD, HEAD + "plugins: []"])
def test_without_any_configuration_it_is_the_built_in_default(text: str) -> None:
    report = convert(text)

    assert scorers(report.policy) == DEFAULT
    assert {note.kind for note in report.notes} == {"default"}


def test_without_a_profile_every_filter_scorer_and_picker_runs() -> None:
    text = HEAD + (
        "plugins: [{type: queue-scorer}, {type: random-picker}, {type: decode-filter},"
        " {type: file-discovery}]"
    )

    assert [name for name, _ in scorers(convert(text).policy)] == [
        "queue-scorer",
        "random-picker",
        "decode-filter",
    ]


@pytest.mark.parametrize("name", ["llm-d-router-0.10-approx", "llm-d-router-0.10-precise"])
def test_the_captured_configurations_weigh_as_they_say(name: str) -> None:
    report = convert(sample(name))

    assert scorers(report.policy) == DEFAULT
    assert ("/plugins/0", "file-discovery") in {
        (note.pointer, note.subject) for note in report.unmapped
    }


def test_the_precise_index_is_the_routers_own() -> None:
    policy = convert(sample("llm-d-router-0.10-precise")).policy

    assert [plugin.type for plugin in policy.plugins] == ["precise-prefix-cache-producer"]
    assert policy.profiles[0].plugins[2].parameters == {
        "prefixMatchInfoProducerName": "precise-prefix-cache-producer"
    }


def test_pairs_keep_their_stages_weights_names_and_decider() -> None:
    report = convert(sample("everything"))
    policy = report.policy

    assert scorers(policy, "prefill") == [
        ("prefill-filter", 1),
        ("prefix-cache-affinity-filter", 1),
        ("token-load-scorer", 1.5),
        ("prefix-cache-scorer", 3),
    ]
    assert scorers(policy, "decode") == [
        ("decode-filter", 1),
        ("active-request-scorer", 1),
        ("weighted-random-picker", 1),
    ]
    outside = {plugin.name or plugin.type: plugin.parameters for plugin in policy.plugins}
    assert outside == {
        "disagg-profile-handler": {
            "stageOrder": "prefill-first",
            "deciders": {"prefill": "short-stays"},
        },
        "short-stays": {"nonCachedTokens": 16},
        "prompts-index": {"autoTune": False},
    }


def test_every_part_without_a_counterpart_is_named_with_its_place() -> None:
    kept = {(note.pointer, note.subject) for note in convert(sample("everything")).unmapped}

    assert {
        ("/plugins/2", "always-disagg-multimodal-decider"),
        ("/plugins/7", "burst-prefix-cache-producer"),
        ("/plugins/12", "utilization-filter"),
        ("/plugins/14", "multicluster-something"),
        ("/plugins/17", "utilization-detector"),
        ("/plugins/18", "priority-holdback-policy"),
        ("/plugins/19", "openai-parser"),
        ("/schedulingProfiles/1/plugins/1", "utilization-filter"),
        ("/schedulingProfiles/2", "experiment"),
        ("/dataLayer", "dataLayer"),
        ("/flowControl/saturationDetector", "saturationDetector"),
        ("/flowControl/priorityBands/0/maxBytes", "maxBytes"),
        ("/flowControl/priorityBands/0/orderingPolicyRef", "edf-ordering-policy"),
    } <= kept


def test_old_names_convert_like_current_ones() -> None:
    policy = convert(sample("old-names")).policy

    assert scorers(policy, "prefill") == [("label-selector-filter", 1), ("prefix-cache-scorer", 3)]
    assert scorers(policy, "decode") == [("prefix-cache-scorer", 2), ("queue-scorer", 1)]
    indices = {plugin.name: plugin.type for plugin in policy.plugins if plugin.name}
    assert indices == {
        "pd-profile-handler": "disagg-profile-handler",
        "prefix-cache-scorer-producer": "approx-prefix-cache-producer",
        "precise-prefix-cache-scorer-producer": "precise-prefix-cache-producer",
    }


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_what_is_converted_can_decide(path: Path) -> None:
    report = convert(path.read_text())
    roles = ("prefill", "decode", "decode")
    endpoints = [
        endpoint_dict(f"e{row}", role=role, labels={"tier": "fast"})
        for row, role in enumerate(roles)
    ]
    entry = json.loads(json.dumps(_plain(report.policy)))
    document = document_dict(*endpoints, policy=entry)
    policies.check(parse_document(json.dumps(document).encode()))

    decision = make_router(*endpoints, policy=entry).decide(make_request(), now=1.0)

    assert decision.destination in ("e1", "e2")


def _plain(policy: Policy) -> object:
    return msgspec.to_builtins(policy)


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        pytest.param(
            "plugins: [{type: queue-scorer}]\nschedulingProfiles: [{name: a}, {name: b}]",
            "/schedulingProfiles",
            id="two-profiles-and-no-handler",
        ),
        pytest.param(
            "plugins: [{type: single-profile-handler}, {type: disagg-profile-handler}]\n"
            "schedulingProfiles: [{name: decode}]",
            "/plugins",
            id="two-handlers",
        ),
        pytest.param(
            "plugins: [{type: disagg-profile-handler}]\nschedulingProfiles: [{name: answers}]",
            "/schedulingProfiles",
            id="handler-without-its-profile",
        ),
        pytest.param(
            "plugins: [{type: disagg-profile-handler, parameters: {deciders: {prefill: x}}}]\n"
            "schedulingProfiles: [{name: decode}, {name: prefill}]",
            "/plugins",
            id="decider-of-nobody",
        ),
        pytest.param(
            "plugins: [{type: queue-scorer}]\n"
            "schedulingProfiles: [{name: a, plugins: [{pluginRef: queue-scorer, weight: -1}]}]",
            "/schedulingProfiles/0/plugins/0/weight",
            id="negative-weight",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(text: str, pointer: str) -> None:
    with pytest.raises(DocumentError) as caught:
        convert(HEAD + text)

    assert caught.value.pointer == pointer


def test_a_note_reads_like_a_line() -> None:
    note = convert(sample("everything")).unmapped[0]

    assert str(note) == (
        "kept /plugins/2 always-disagg-multimodal-decider: there is no encode stage"
    )
