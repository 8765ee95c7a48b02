"""What the Pod of an engine promises about its start, its end, its files and its variables."""

import pytest

from controlplane.serving.renderers import _pods
from controlplane.serving.renderers.base import (
    ArtefactVolume,
    DeviceClaim,
    RenderRefusedError,
    SecretVariable,
    Toleration,
)
from tests.controlplane.serving.renderers.groups import make_group


def test_nothing_kills_a_busy_engine() -> None:
    container = _pods.container(make_group(start_seconds=3600))

    assert "livenessProbe" not in container
    probe = container["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == 3600


def test_the_longest_answer_fits_between_leaving_and_the_kill() -> None:
    group = make_group(drain_seconds=20, max_answer_seconds=900)

    spec = _pods.pod_spec(group)

    wait = spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert wait == 20
    assert spec["terminationGracePeriodSeconds"] > wait + 900


def test_fields_of_the_pod_come_before_the_variables_that_may_name_them() -> None:
    group = make_group(env={"A_HOST": "$(POD_IP)", "A_TOPIC": "kv@$(POD_NAME)@m"})

    env = _pods.environment(group)

    assert [row["name"] for row in env] == ["POD_IP", "POD_NAME", "NODE_NAME", "A_HOST", "A_TOPIC"]
    assert env[3]["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"
    assert env[4]["value"] == "kv@$(POD_NAME)@m"


def test_a_secret_is_named_and_never_written() -> None:
    reference = SecretVariable(variable="HF_TOKEN", secret="hub", key="token")

    env = _pods.environment(make_group(secrets=(reference,)))

    assert env[-1] == {
        "name": "HF_TOKEN",
        "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}},
    }


def test_a_variable_given_twice_is_refused_by_name() -> None:
    reference = SecretVariable(variable="HF_TOKEN", secret="hub", key="token")

    with pytest.raises(RenderRefusedError, match="given twice: HF_TOKEN"):
        _pods.environment(make_group(env={"HF_TOKEN": "x"}, secrets=(reference,)))


@pytest.mark.parametrize(
    ("kind", "source", "volume"),
    [
        ("pvc", "weights", {"persistentVolumeClaim": {"claimName": "weights", "readOnly": True}}),
        ("node-path", "/data/m", {"hostPath": {"path": "/data/m", "type": "Directory"}}),
        (
            "oci",
            "r.example/m@sha256:0",
            {"image": {"reference": "r.example/m@sha256:0", "pullPolicy": "IfNotPresent"}},
        ),
    ],
)
def test_the_model_is_mounted_read_only(kind: str, source: str, volume: dict[str, object]) -> None:
    artefact = ArtefactVolume(kind=kind, source=source, sub_path="llama")  # type: ignore[arg-type]

    spec = _pods.pod_spec(make_group(artefact=artefact))

    assert spec["volumes"][-1] == {"name": "model", **volume}
    assert spec["containers"][0]["volumeMounts"][-1] == {
        "name": "model", "mountPath": "/models", "readOnly": True, "subPath": "llama",
    }  # fmt: skip


def test_several_nodes_are_a_choice_among_them() -> None:
    spec = _pods.pod_spec(make_group(hostnames=("b", "a")))

    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == ["a", "b"]


def test_a_toleration_without_an_effect_is_for_every_effect() -> None:
    spec = _pods.pod_spec(make_group(tolerations=(Toleration(key="google.com/tpu"),)))

    assert spec["tolerations"] == [{"key": "google.com/tpu", "operator": "Exists"}]


def test_the_pod_has_no_rights_towards_the_cluster() -> None:
    spec = _pods.pod_spec(make_group())

    assert spec["automountServiceAccountToken"] is False


def test_another_claim_is_another_template_and_a_change_of_role_is_none() -> None:
    claim = DeviceClaim(device_class="gpu.nvidia.com")
    groups = [
        make_group(devices=claim, role="prefill"),
        make_group(devices=claim, role="decode"),
        make_group(devices=DeviceClaim(device_class="gpu.nvidia.com", count=2)),
    ]

    prefill, decode, other = (_pods.claim_template(group) for group in groups)

    assert prefill is not None
    assert decode is not None
    assert other is not None
    assert prefill["metadata"]["name"] == decode["metadata"]["name"]
    # The API server refuses any change of a template's spec.
    assert prefill["spec"] == decode["spec"]
    assert prefill["metadata"]["name"] != other["metadata"]["name"]
