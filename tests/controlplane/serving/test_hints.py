"""What to do about a condition that does not hold."""

import pytest
from django.utils import translation

from controlplane.serving.hints import hint_of


@pytest.mark.parametrize(
    ("reason", "message", "words"),
    [
        ("Unschedulable", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "holds what"),
        ("Unschedulable", "1 node(s) had untolerated taint {a: b}", "Tolerate the node's taint"),
        (
            "Unschedulable",
            "1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }",
            "reports nothing",
        ),
        ("Unschedulable", "0/1 nodes are available: 1 cannot allocate all claims.", "device class"),
        ("FailedCreate", 'pods "x" is forbidden: exceeded quota: llm', "quota is spent"),
        ("CrashLoopBackOff", "OOMKilled, exit code 137, restarts: 3.", "more memory"),
        ("CrashLoopBackOff", "Error, exit code 1, restarts: 3.", "its output says why"),
        ("ImagePullBackOff", 'Back-off pulling image "x"', "Correct the image"),
        ("FieldConflict", "kubectl-edit holds .spec.replicas", "Somebody else manages"),
        ("Forbidden", 'admission webhook "p" denied the request: no', "policy of the cluster"),
    ],
)
def test_each_reason_has_what_to_do(reason: str, message: str, words: str) -> None:
    condition = {"type": "Started", "status": "False", "reason": reason, "message": message}

    assert words in hint_of(condition)


def test_what_holds_needs_no_hint_and_drift_holds_when_it_is_false() -> None:
    assert hint_of({"type": "Ready", "status": "True", "reason": "Loading"}) == ""
    assert hint_of({"type": "Drifted", "status": "False", "reason": "FieldsDiffer"}) == ""
    assert hint_of({"type": "Drifted", "status": "True", "reason": "FieldsDiffer"}) != ""
    assert hint_of({"type": "Ready", "status": "False", "reason": "NobodyKnows"}) == ""


def test_hints_are_in_the_readers_language() -> None:
    condition = {"type": "Started", "status": "False", "reason": "ImagePullBackOff"}

    with translation.override("ko"):
        assert "이미지" in hint_of(condition)
