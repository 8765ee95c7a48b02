"""Scenario files: what they ask for, and refusals that name the line."""

import pytest

from routing.core.document import encode_document
from routing.simulator.scenario import Surroundings
from routing.simulator.scenario_file import ScenarioError, read_study
from tests.architecture.sources import ROOT
from tests.routing.pool.builders import SPEED, endpoint_dict, make_document

HEAD = "model: granite-4.1-8b\nfleet:\n  - {accelerator: amd-mi325x, count: 2}\n"
WORKLOAD = "workload: {id: no-sharing, stages: [[5, 4]]}\n"


def test_every_policy_runs_with_every_seed() -> None:
    study = read_study((HEAD + WORKLOAD + "policies: [random, consort]\nseeds: [3, 4]\n").encode())

    runs = [(run.policy, run.seed, run.scenario.document.policy.name) for run in study.runs]
    assert runs == [
        ("random", 3, "random"),
        ("random", 4, "random"),
        ("consort", 3, "consort"),
        ("consort", 4, "consort"),
    ]


def test_what_is_stated_reaches_the_scenario() -> None:
    text = (
        HEAD
        + WORKLOAD
        + """policy: {parameters: {leave_home_factor: 2.5}}
slo: {ttft_seconds: 1.5, tpot_seconds: 0.05}
surroundings: {scrape_seconds: 2, has_events: true}
troubles: [{at: 1, endpoint: amd-mi325x-1, kind: slow, speed: 0.5}]
admission: {maximum_wait_seconds: 7}
"""
    )
    (run,) = read_study(text.encode()).runs
    scenario, document = run.scenario, run.scenario.document

    assert document.policy.parameters.leave_home_factor == 2.5
    assert (scenario.ttft_target_seconds, document.slo.ttft_seconds) == (1.5, 1.5)
    assert scenario.surroundings == Surroundings(scrape_seconds=2, has_events=True)
    assert scenario.troubles[0].speed == 0.5
    assert document.admission.maximum_wait_seconds == 7


def test_a_fleet_by_name_brings_its_troubles_and_blocks_follow_the_trace() -> None:
    (run,) = read_study(b"fleet: one-dies\nworkload: mooncake-conversation\n").runs

    assert [trouble.kind for trouble in run.scenario.troubles] == ["die", "start"]
    assert {spec.block_size_tokens for spec in run.scenario.document.endpoints} == {512}


def test_a_pool_document_is_a_fleet() -> None:
    name = "amd-mi325x/granite-4.1-8b"
    endpoints = [endpoint_dict(f"e{place}", speed_class=name) for place in range(3)]
    raw = encode_document(make_document(*endpoints, speed_classes={name: SPEED}))
    text = "pool: {document: pool.json, speeds: {e1: 0.5}}\n" + WORKLOAD

    (run,) = read_study(text.encode(), read={"pool.json": raw}.__getitem__).runs

    assert set(run.scenario.profiles) == {"e0", "e1", "e2"}
    assert run.scenario.profiles["e0"].model == "granite-4.1-8b"
    assert run.scenario.speeds == {"e1": 0.5}


def test_the_example_of_the_documents_is_one() -> None:
    study = read_study((ROOT / "docs/examples/scenario.yaml").read_bytes())

    assert len(study.runs) == 3
    assert study.notes == ()


def _cases() -> list[object]:
    fleet = "fleet:\n  - {accelerator: amd-mi325x, %s}\n"
    return [
        pytest.param("a: [1", None, "no YAML", id="yaml"),
        pytest.param("", None, "is a table", id="empty"),
        pytest.param(WORKLOAD, 1, "fleet: There is none", id="no-fleet"),
        pytest.param(HEAD, 1, "missing required field `workload`", id="no-workload"),
        pytest.param(HEAD + WORKLOAD + "polices: [x]\n", 5, "Did you mean 'policies'", id="field"),
        pytest.param(
            HEAD + WORKLOAD + "policies: [consort, consor]\n", 5, "Invalid enum", id="policy"
        ),
        pytest.param("model: m\nfleet: []\n" + WORKLOAD, 2, "no endpoint", id="no-endpoint"),
        pytest.param(
            "model: m\n" + fleet % "count: 0" + WORKLOAD, 3, "fleet/0/count: Expected", id="count"
        ),
        pytest.param(
            "model: gpt-2\n" + fleet % "count: 1" + WORKLOAD, 1, "No profile for model", id="model"
        ),
        pytest.param(fleet % "count: 1" + WORKLOAD, 1, "name of the model", id="no-model"),
        pytest.param(
            HEAD.replace("mi325x", "mi999") + WORKLOAD, 3, "No profile for accel", id="accelerator"
        ),
        pytest.param(
            "model: granite-4.1-8b\n" + fleet % "role: prefill" + WORKLOAD,
            2,
            "Nobody answers",
            id="prefill-only",
        ),
        pytest.param(
            "model: granite-4.1-8b\n" + fleet % "role: decode" + WORKLOAD,
            2,
            "Nobody computes prompts",
            id="decode-only",
        ),
        pytest.param(
            "model: granite-4.1-8b\n" + fleet % 'price_per_hour: "1"' + WORKLOAD,
            1,
            "not in which currency",
            id="currency",
        ),
        pytest.param("fleet: nxt-4vendor\n" + WORKLOAD, 1, "No fleet is called", id="fleet-name"),
        pytest.param(
            "fleet: nxt-3vendor\ncurrency: KRW\n" + WORKLOAD, 2, "list prices", id="fleet-currency"
        ),
        pytest.param(
            HEAD + "workload:\n  id: no-sharing\n  stages:\n    - [0, 5]\n",
            7,
            "> 0.0",
            id="zero-rate",
        ),
        pytest.param(
            HEAD + "workload:\n  kind: trace\n  format: mooncake\n  path: t\n",
            7,
            "Line 2: Its time 0 ms is before",
            id="trace-out-of-order",
        ),
        pytest.param(HEAD + "workload: {id: no-sharing, input_tokens: 40000}\n",
                     4, "the model takes 32768", id="too-long"),
        pytest.param(
            HEAD + WORKLOAD + "troubles:\n  - at: 1\n    endpoint: x\n    kind: die\n",
            7,
            "no endpoint 'x'",
            id="trouble",
        ),
        pytest.param(
            HEAD + WORKLOAD + "surroundings:\n  scrape_seconds: 0\n", 6, ">= 0.001", id="interval"
        ),
        pytest.param("pool: {document: gone}\n" + WORKLOAD, 1, "cannot be read", id="no-document"),
        pytest.param("pool: {document: t}\n" + WORKLOAD, 1, "t is refused", id="document"),
        pytest.param(
            HEAD + "pool: {document: gone}\n" + WORKLOAD, 4, "and not both", id="fleet-and-pool"
        ),
    ]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "words"), _cases())
def test_what_cannot_be_simulated_is_refused_with_its_line(
    text: str, line: int | None, words: str
) -> None:
    trace = b'{"timestamp": 1, "input_length": 5, "output_length": 5, "hash_ids": [1]}\n'

    def read(path: str) -> bytes:
        if path != "t":
            raise FileNotFoundError(2, "No such file or directory", path)
        return trace + trace.replace(b": 1,", b": 0,")

    with pytest.raises(ScenarioError) as caught:
        read_study(text.encode(), read=read)

    assert words in str(caught.value)
    assert caught.value.line == line


def test_a_model_that_does_not_fit_is_refused() -> None:
    text = "model: qwen3-32b\nfleet:\n  - {accelerator: furiosa-rngd}\n" + WORKLOAD

    with pytest.raises(ScenarioError, match=r"Line 3: .*has no room for 'qwen3-32b'"):
        read_study(text.encode())
