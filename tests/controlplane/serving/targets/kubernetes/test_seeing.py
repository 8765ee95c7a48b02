"""From objects of a cluster to what is true of an engine, with reasons in the cluster's words."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.serving.targets.base import SeenCondition, SeenEngine
from controlplane.serving.targets.kubernetes.seeing import Sight, see
from tests.controlplane.serving.targets.kubernetes.objects import (
    HASH,
    NAME,
    Object,
    deployment,
    manifest,
    pending,
    pod,
    waiting,
)


def look(found: Any, *pods: Any, events: Any = ()) -> Sight:
    return see(NAME, wanted=manifest(), found=found, pods=pods, events=events)


def told(engine: SeenEngine, kind: str) -> SeenCondition:
    return next(row for row in engine.conditions if row.type == kind)


def test_an_engine_that_is_ready_runs_at_its_pods_address() -> None:
    engine = look(deployment(), pod()).engine

    assert (engine.state, engine.url, engine.instance) == (
        "running", "http://10.1.2.3:8000", "p-1:0"
    )  # fmt: skip
    assert (engine.spec_hash, engine.asked_spec_hash, engine.generation) == (HASH, HASH, 3)
    assert {row.type: row.status for row in engine.conditions} == {
        "Scheduled": "True", "Started": "True", "Ready": "True", "Drifted": "False",
    }  # fmt: skip


def test_an_address_of_ipv6_is_written_in_brackets() -> None:
    engine = look(deployment(), pod(podIP="fd00::1")).engine

    assert engine.url == "http://[fd00::1]:8000"


def test_a_restart_is_another_instance() -> None:
    again = pod()
    again["status"]["containerStatuses"][0]["restartCount"] = 1

    assert look(deployment(), again).engine.instance == "p-1:1"


def test_a_status_about_an_earlier_generation_says_nothing_of_this_one() -> None:
    engine = look(deployment(observedGeneration=1), pod()).engine

    assert (engine.state, engine.instance) == ("starting", "p-1:0")
    assert (told(engine, "Started").status, told(engine, "Started").reason) == (
        "Unknown", "NotTakenUp"
    )  # fmt: skip
    assert "generation 2; it reached 1" in told(engine, "Started").message


@pytest.mark.parametrize(
    "message",
    [
        "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        "0/3 nodes are available: 3 node(s) had untolerated taint {a: b}.",
        "0/1 nodes are available: 1 cannot allocate all claims.",
    ],
)
def test_no_node_is_told_in_the_schedulers_words(message: str) -> None:
    engine = look(deployment(), pending("Unschedulable", message)).engine

    assert (engine.state, engine.url) == ("starting", None)
    for kind in ("Scheduled", "Started"):
        row = told(engine, kind)
        assert (row.status, row.reason, row.message) == ("False", "Unschedulable", message)
    assert engine.failure == f"Unschedulable: {message}"


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("ImagePullBackOff", 'Back-off pulling image "registry.example/vllm:1"'),
        ("ErrImagePull", "not found"),
        ("InvalidImageName", "couldn't parse image name"),
        ("CreateContainerConfigError", 'secret "hf" not found'),
    ],
)
def test_what_the_kubelet_waits_for_is_told_in_its_words(reason: str, message: str) -> None:
    engine = look(deployment(), waiting(reason, message)).engine

    row = told(engine, "Started")
    assert (engine.state, row.reason, row.message) == ("starting", reason, message)


def test_a_crash_loop_says_how_the_process_ended() -> None:
    ended = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-12-01T10:05:00Z"}
    crashed = waiting(
        "CrashLoopBackOff", "back-off 40s", restartCount=3, lastState={"terminated": ended}
    )

    engine = look(deployment(), crashed).engine

    assert (engine.state, engine.exit_code, engine.starts) == ("exited", 137, 4)
    assert engine.exited_at == 1796119500.0
    assert engine.instance is None
    row = told(engine, "Started")
    assert row.reason == "CrashLoopBackOff"
    assert row.message == "OOMKilled, exit code 137, restarts: 3. back-off 40s"


def test_an_engine_that_reads_its_weights_is_starting() -> None:
    loading = pod(ready=False)
    loading["status"]["containerStatuses"][0]["started"] = False

    engine = look(deployment(), loading).engine

    assert (engine.state, told(engine, "Started").reason) == ("starting", "Loading")


def test_an_engine_that_answers_late_goes_on_running() -> None:
    engine = look(deployment(), pod(ready=False)).engine

    assert (engine.state, engine.instance) == ("running", "p-1:0")
    assert told(engine, "Ready").status == "False"


def test_a_quota_is_told_when_no_pod_could_be_made() -> None:
    message = 'pods "x" is forbidden: exceeded quota: llm, requested: nvidia.com/gpu=1'
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}

    engine = look(deployment(conditions=[failure | {"message": message}])).engine

    assert (engine.state, told(engine, "Started").reason) == ("starting", "FailedCreate")
    assert told(engine, "Scheduled").message == message


def test_a_deadline_that_passed_is_told_with_what_hinders() -> None:
    late = {
        "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
        "message": "ReplicaSet has timed out progressing.",
    }  # fmt: skip

    engine = look(deployment(conditions=[late]), waiting("ErrImagePull", "not found")).engine

    row = told(engine, "Started")
    assert row.reason == "ErrImagePull"
    assert row.message == "ErrImagePull: not found ReplicaSet has timed out progressing."


def test_warnings_explain_a_pod_that_only_waits() -> None:
    creating = waiting("ContainerCreating")
    warnings = [
        {"type": "Warning", "reason": reason, "message": reason, "lastTimestamp": at,
         "involvedObject": {"uid": uid, "name": "n"}}
        for reason, at, uid in [
            ("FailedMount", "2026-12-01T10:02:00Z", "p-1"),
            ("FailedAttachVolume", "2026-12-01T10:01:00Z", "p-1"),
            ("BackOff", "2026-12-01T10:03:00Z", "p-2"),
        ]
    ]  # fmt: skip

    before = look(deployment(), creating)
    engine = look(deployment(), creating, events=warnings).engine

    assert before.is_unexplained
    assert told(engine, "Started").reason == "FailedMount"


def test_an_engine_is_absent_only_when_its_pods_are_gone() -> None:
    assert look(None).engine.state == "absent"

    ending = look(None, pod()).engine

    assert (ending.state, ending.instance) == ("ending", "p-1:0")
    assert "gpu-1-0-kr1-abc" in ending.failure


def test_the_pod_before_is_waited_for() -> None:
    old = pod()
    old["metadata"] |= {"deletionTimestamp": "2026-12-01T10:10:00Z", "uid": "p-0"}

    engine = look(deployment(), old).engine

    assert (engine.state, engine.instance) == ("ending", "p-0:0")
    assert told(engine, "Started").reason == "OldPodEnding"


def test_a_deployment_that_is_being_deleted_is_ending() -> None:
    going = deployment()
    going["metadata"]["deletionTimestamp"] = "2026-12-01T10:10:00Z"

    assert look(going, pod()).engine.state == "ending"


def test_a_silent_node_makes_its_engine_suspect() -> None:
    lost = pod()
    lost["status"]["conditions"][1] |= {"status": "False", "reason": ""}

    sight = look(deployment(), lost)

    assert sight.suspect_url == "http://10.1.2.3:8000"
    row = told(sight.engine, "Ready")
    assert (row.status, row.reason) == ("Unknown", "NodeLost")
    assert NODE_SENTENCE in row.message


NODE_SENTENCE = "Node gpu-1 reports nothing."


def test_an_evicted_pod_has_ended_and_another_one_counts() -> None:
    evicted = pod(phase="Failed", reason="Evicted", message="The node was low on memory.")
    evicted["status"]["containerStatuses"] = []
    fresh = pod()
    fresh["metadata"] |= {"uid": "p-2", "creationTimestamp": "2026-12-01T10:00:00Z"}

    alone = look(deployment(), evicted).engine
    both = look(deployment(), evicted, fresh).engine

    assert (alone.state, told(alone, "Started").reason) == ("exited", "Evicted")
    assert both.instance == "p-2:0"


def test_drift_names_the_field_and_is_none_while_something_else_was_applied() -> None:
    changed = deployment()
    changed["spec"]["replicas"] = 2
    other = copy.deepcopy(changed)
    other["metadata"]["annotations"]["consort.dev/spec-hash"] = "cd" * 32

    engine = look(changed, pod()).engine

    assert engine.has_drifted
    assert told(engine, "Drifted").message == ".spec.replicas: 2 instead of 1"
    assert "Drifted" not in {row.type for row in look(other, pod()).engine.conditions}


@pytest.mark.parametrize(
    "found",
    [
        {"metadata": {"name": "x"}},
        {"metadata": None, "status": []},
        {"metadata": {"generation": "2"}, "status": {"observedGeneration": 2}},
        {"metadata": {"generation": 2}, "status": "Running"},
    ],
)
def test_what_cannot_be_read_is_unknown(found: Object) -> None:
    engine = look(found, pod()).engine

    assert engine.state == "unknown"
    assert {row.status for row in engine.conditions} == {"Unknown"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=5,
)


@st.composite
def damaged(draw: st.DrawFn, sound: Object) -> Any:
    """The object with one to three places replaced by anything, or taken away."""
    found: Any = copy.deepcopy(sound)
    for _ in range(draw(st.integers(1, 3))):
        place = found
        while True:
            if isinstance(place, dict) and place:
                key: Any = draw(st.sampled_from(sorted(place, key=str)))
            elif isinstance(place, list) and place:
                key = draw(st.integers(0, len(place) - 1))
            else:
                break
            if isinstance(place[key], dict | list) and place[key] and draw(st.booleans()):
                place = place[key]
                continue
            if isinstance(place, dict) and draw(st.booleans()):
                del place[key]
            else:
                place[key] = draw(JSON)
            break
    return found


ENDED = waiting(
    "CrashLoopBackOff", restartCount=1, lastState={"terminated": {"exitCode": 1, "reason": "Error"}}
)


@given(
    found=st.none() | damaged(deployment()),
    pods=st.lists(damaged(pod()) | damaged(ENDED) | damaged(pending("x", "y")) | JSON, max_size=3),
    events=st.lists(JSON | st.just({"type": "Warning", "involvedObject": 3}), max_size=2),
)
def test_no_shape_is_too_odd(found: Any, pods: list[Any], events: list[Any]) -> None:
    engine = look(found, *pods, events=events).engine

    assert (engine.state == "absent") == (found is None and not pods)
    if engine.state == "running":
        assert engine.url
        assert engine.instance
        assert engine.instance.partition(":")[0]
    assert all(row.status in {"True", "False", "Unknown"} for row in engine.conditions)
    assert all(isinstance(row.message, str) for row in engine.conditions)
    assert engine.as_json()
