"""One Pod as it was seen."""

from controlplane.serving.targets.kubernetes.pods import look
from tests.controlplane.serving.targets.kubernetes.objects import pod, waiting


def test_a_container_of_another_name_counts_when_it_is_the_only_one() -> None:
    renamed = pod()
    renamed["spec"]["containers"][0]["name"] = renamed["status"]["containerStatuses"][0]["name"] = (
        "server"
    )

    seen = look(renamed)

    assert (seen.url, seen.is_up) == ("http://10.1.2.3:8000", True)


def test_an_init_container_that_fails_is_named_with_its_end() -> None:
    found = waiting("PodInitializing")
    found["status"]["initContainerStatuses"] = [
        {"name": "done", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
        {"name": "fetch", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
         "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}},
    ]  # fmt: skip

    seen = look(found)

    assert seen.started.reason == "CrashLoopBackOff"
    assert seen.started.message == "fetch: Error, exit code 1, restarts: 2."


def test_a_kubelet_that_takes_readiness_away_itself_is_not_silent() -> None:
    assert not look(pod(ready=False)).is_suspect


def test_a_pod_that_was_ended_because_its_node_is_silent_is_suspect() -> None:
    lost = pod()
    lost["metadata"]["deletionTimestamp"] = "2026-12-01T10:10:00Z"
    lost["status"]["conditions"].append(
        {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    )

    assert look(lost).is_suspect
