"""Configurations of inference-perf: the same prompts, rates and clients."""

from typing import Any

import pytest

from routing.core.refusals import DocumentError
from routing.simulator.workloads.closed_loop import ClosedLoop
from routing.simulator.workloads.random_lengths import RandomLengths
from routing.simulator.workloads.readers.inference_perf import read_inference_perf
from routing.simulator.workloads.shared_prefix import SharedPrefix

SHARED = {
    "type": "shared_prefix",
    "shared_prefix": {
        "num_groups": 150,
        "num_prompts_per_group": 5,
        "system_prompt_len": 6000,
        "question_len": 1200,
        "output_len": 1000,
        "enable_multi_turn_chat": False,
    },
}
LOAD = {"type": "poisson", "interval": 15, "stages": [{"rate": 15, "duration": 50}]}
LENGTHS = {"mean": 5000, "std_dev": 500, "min": 10, "max": 8000, "total_count": 100}


def _read(load: Any = LOAD, data: Any = SHARED) -> Any:
    tree = {"load": load, "data": data, "api": {"type": "completion"}, "server": {"type": "vllm"}}
    return read_inference_perf(tree, name="own")


def test_shared_prefixes() -> None:
    workload = _read()

    assert isinstance(workload, SharedPrefix)
    assert (workload.groups, workload.prompts, workload.system_tokens) == (150, 5, 6000)
    assert workload.arrivals_are == "poisson"
    assert [(stage.rate_qps, stage.seconds) for stage in workload.stages] == [(15, 50)]


def test_random_lengths() -> None:
    data = {"type": "random", "input_distribution": LENGTHS, "output_distribution": {"mean": 250}}

    workload = _read(data=data)

    assert isinstance(workload, RandomLengths)
    assert workload.input_spread == pytest.approx(0.1)
    assert (workload.most_input_tokens, workload.output_spread) == (8000, 0.0)


def test_a_number_of_clients() -> None:
    stages = [{"concurrency_level": 10, "num_requests": 95}]

    workload = _read(load={"type": "concurrent", "stages": stages})

    assert isinstance(workload, ClosedLoop)
    assert (workload.clients, workload.requests_per_client) == ((10,), 10)


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        pytest.param({"load": {"stages": []}}, "/load/stages", id="no-stage"),
        pytest.param({"load": {"stages": [{"rate": 3}]}}, "/load/stages/0", id="no-duration"),
        pytest.param(
            {"load": {"type": "concurrent", "stages": [{"rate": 3, "duration": 1}]}},
            "/load/stages/0",
            id="no-clients",
        ),
        pytest.param({"load": {"stages": [{"rate": 0}]}}, "/load/stages/0/rate", id="zero-rate"),
        pytest.param({"data": {"type": "sharegpt"}}, "/data/type", id="data"),
        pytest.param({"data": {"type": "shared_prefix"}}, "/data", id="no-part"),
        pytest.param({"data": {"type": "random"}}, "/data", id="no-lengths"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(changes: Any, pointer: str) -> None:
    with pytest.raises(DocumentError) as caught:
        _read(**changes)

    assert caught.value.pointer == pointer
