"""Workloads from what a file states, and refusals that say where and what."""

from typing import Any

import pytest

from routing.core.refusals import DocumentError
from routing.simulator.workloads.building import build
from routing.simulator.workloads.closed_loop import ClosedLoop
from routing.simulator.workloads.mixture import Mixture
from routing.simulator.workloads.shared_prefix import SharedPrefix
from tests.routing.simulator.workloads.draws import drawn

OWN = {"kind": "shared-prefix", "groups": 2, "prompts": 1, "stages": [[5, 10]]}
PART = {"kind": "random-lengths", "input_tokens": 100, "output_tokens": 10}
LINE = b'{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]}\n'


def test_a_name_may_have_other_values() -> None:
    built = build({"id": "nxt-granite-6k", "stages": [[7, 3]], "warm_up_stages": 0}).workload

    assert isinstance(built, SharedPrefix)
    assert [stage.name for stage in built.stages] == ["7 qps"]
    assert built.groups == 150


def test_kinds_that_hold_others() -> None:
    loop = build({"kind": "closed-loop", "clients": [2], "requests": PART}).workload
    mixed = build(
        {"kind": "mixture", "stages": [[5, 5]], "parts": [{"share": 1, "requests": PART}]}
    )

    assert isinstance(loop, ClosedLoop)
    assert isinstance(mixed.workload, Mixture)
    assert drawn(mixed.workload)[0].prompt.tokens == 100


def test_files_come_from_the_caller() -> None:
    tree = {"kind": "trace", "format": "mooncake", "path": "some/trace.jsonl", "speed": 2}
    asked = []

    def read(path: str) -> bytes:
        asked.append(path)
        return LINE

    built = build(tree, read=read)

    assert asked == ["some/trace.jsonl"]
    assert built.workload.block_tokens == 512
    assert built.workload.longest_tokens == 605


def test_an_inference_perf_configuration_is_a_workload() -> None:
    text = b"""
load: {type: constant, stages: [{rate: 2, duration: 5}]}
data: {type: shared_prefix, shared_prefix: {num_groups: 2, num_prompts_per_group: 2,
       system_prompt_len: 100, question_len: 20, output_len: 5}}
"""
    built = build({"kind": "inference-perf", "path": "x.yaml"}, read=lambda _: text).workload

    assert len(drawn(built)) == 9


@pytest.mark.parametrize(
    ("tree", "pointer", "words"),
    [
        pytest.param(3, "", "id of one", id="number"),
        pytest.param("guide", "/id", "No workload is called 'guide'", id="name"),
        pytest.param({"id": []}, "/id", "No workload is called", id="name-of-a-list"),
        pytest.param({"groups": 3}, "/kind", "needs a 'kind' or an 'id'", id="neither"),
        pytest.param({"kind": "x"}, "/kind", "No kind is called 'x'", id="kind"),
        pytest.param(OWN | {"stages": []}, "/stages", "no stage", id="no-stage"),
        pytest.param(OWN | {"stages": [[0, 5]]}, "/stages/0/0", "> 0", id="zero-rate"),
        pytest.param(OWN | {"stages": [[5, -1]]}, "/stages/0/1", "> 0", id="negative-time"),
        pytest.param(OWN | {"stages": [[1e5, 8e4]]}, "/stages", "at most 1,000,000", id="too-many"),
        pytest.param(OWN | {"group": 3}, "/group", "Did you mean 'groups'", id="field"),
        pytest.param(OWN | {"block_tokens": 17}, "/block_tokens", "Invalid enum", id="block"),
        pytest.param(
            {"kind": "closed-loop", "clients": [2], "requests": {"kind": "agents"}},
            "/requests",
            "stages",
            id="part-of-a-kind-that-cannot",
        ),
        pytest.param(
            {"kind": "closed-loop", "clients": [2], "requests": OWN},
            "/requests/stages",
            "belong to the whole",
            id="part-with-stages",
        ),
        pytest.param(
            {"kind": "mixture", "stages": [[1, 1]], "parts": [{"share": 0, "requests": PART}]},
            "/parts/0/share",
            "> 0",
            id="share",
        ),
        pytest.param(
            {
                "kind": "mixture",
                "stages": [[1, 1]],
                "parts": [{"share": 1, "requests": PART | {"block_tokens": 16}}],
            },
            "/parts",
            "block_tokens",
            id="blocks-of-parts",
        ),
        pytest.param(
            {"kind": "agents", "stages": [[1, 1]], "most_tokens": 2000},
            "/most_tokens",
            "No turn fits",
            id="agents-without-room",
        ),
        pytest.param({"kind": "trace", "format": "azure"}, "/path", "either", id="no-trace"),
        pytest.param(
            {"kind": "trace", "format": "azure", "packaged": "x.csv"},
            "/packaged",
            "No packaged trace",
            id="packaged",
        ),
        pytest.param(
            {"kind": "trace", "format": "azure", "path": "x.csv"},
            "/path",
            "no file may be named",
            id="no-files",
        ),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(tree: Any, pointer: str, words: str) -> None:
    with pytest.raises(DocumentError) as caught:
        build(tree)

    assert caught.value.pointer == pointer
    assert words in caught.value.message


def test_a_trace_is_refused_with_its_line() -> None:
    tree = {"kind": "trace", "format": "mooncake", "path": "t"}

    with pytest.raises(DocumentError) as caught:
        build(tree, read=lambda _: LINE + LINE.replace(b"[1, 2]", b"[1]"), pointer="/workload")

    assert caught.value.pointer == "/workload/path"
    assert "Line 2: 600 tokens are 2 blocks of 512" in caught.value.message
