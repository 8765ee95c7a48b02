"""Pods of the chart: rights of their processes, probes, secrets, ends."""

import pytest

from controlplane.config.env import Env
from tests.deploy.helm.chart import (
    NAMES,
    Manifest,
    container,
    of_kind,
    rendered,
    workloads,
)

PODS = [(name, part) for name in NAMES for part in workloads(name)]
WITHOUT_PROBES = {"upgrade"}
"""It ends by itself, and has a deadline."""
SECRET_WORDS = ("secret-key", "token-pepper", "database-url", "broker-url", "cache-url")

by_pod = pytest.mark.parametrize(("name", "part"), PODS)


@by_pod
def test_no_process_is_root_or_becomes_it(name: str, part: str) -> None:
    pod = workloads(name)[part]["spec"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    own = container(workloads(name)[part])["securityContext"]
    assert own == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert all("hostPath" not in volume for volume in pod["volumes"])


@by_pod
def test_what_is_written_has_a_bound_and_a_place(name: str, part: str) -> None:
    pod = workloads(name)[part]["spec"]
    writable = {
        mount["name"]
        for mount in container({"spec": pod})["volumeMounts"]
        if "readOnly" not in mount
    }

    scratch = {
        volume["name"] for volume in pod["volumes"] if "sizeLimit" in volume.get("emptyDir", {})
    }
    assert writable - scratch <= {"state"}
    assert {mount["mountPath"] for mount in container({"spec": pod})["volumeMounts"]} >= {"/tmp"}  # noqa: S108 - a path in a pod


@by_pod
def test_every_process_asks_for_what_it_needs_and_has_a_limit(name: str, part: str) -> None:
    resources = container(workloads(name)[part])["resources"]

    assert set(resources["requests"]) == {"cpu", "memory"}
    assert "memory" in resources["limits"]


@by_pod
def test_every_process_is_probed(name: str, part: str) -> None:
    probes = {"startupProbe", "readinessProbe", "livenessProbe"}

    found = probes & set(container(workloads(name)[part]))

    assert found == (set() if part in WITHOUT_PROBES else probes)


@pytest.mark.parametrize("name", NAMES)
def test_probes_ask_by_a_name_that_is_answered(name: str) -> None:
    """Django refuses a request by the address of a pod."""
    web = container(workloads(name)["web"])
    (settings,) = [
        one for one in of_kind(name, "ConfigMap") if one["metadata"]["name"].endswith("-settings")
    ]

    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        (header,) = web[probe]["httpGet"]["httpHeaders"]
        assert header["value"] in settings["data"]["ALLOWED_HOSTS"].split(",")


@pytest.mark.parametrize("name", NAMES)
def test_only_the_worker_has_an_account_with_a_token(name: str) -> None:
    with_token = {
        part for part, pod in workloads(name).items() if pod["spec"]["automountServiceAccountToken"]
    }
    accounts = of_kind(name, "ServiceAccount")

    assert with_token <= {"worker"}
    assert not any(account["automountServiceAccountToken"] for account in accounts)
    used = {pod["spec"].get("serviceAccountName") for pod in workloads(name).values()}
    assert used - {None} <= {account["metadata"]["name"] for account in accounts}


def test_a_worker_that_may_nothing_in_the_cluster_has_no_token() -> None:
    assert workloads("bare")["worker"]["spec"]["automountServiceAccountToken"] is False
    assert workloads("least")["worker"]["spec"]["automountServiceAccountToken"] is True


@pytest.mark.parametrize("name", NAMES)
def test_no_secret_stands_in_an_object(name: str) -> None:
    for manifest in rendered(name):
        assert manifest["kind"] != "Secret"
    for settings in of_kind(name, "ConfigMap"):
        for variable, value in settings["data"].items():
            assert (
                "://" not in value
                or variable == "CSRF_TRUSTED_ORIGINS"
                or variable.endswith("json")
            )
            assert not variable.endswith(("_KEY", "_PEPPER", "_URL", "_TOKEN"))
            if variable.endswith("_FILE") and variable != "LIVENESS_FILE":
                assert value.startswith("/run/consort/")
    for pod in workloads(name).values():
        assert all("value" not in one for one in container(pod).get("env", []))


@by_pod
def test_secrets_are_readable_by_the_pod_alone(name: str, part: str) -> None:
    for volume in workloads(name)[part]["spec"]["volumes"]:
        if "secret" in volume:
            # 0400, which the kubelet makes 0440 for the group of the pod.
            assert volume["secret"]["defaultMode"] == 0o400


@pytest.mark.parametrize("name", NAMES)
def test_every_file_that_a_setting_names_is_mounted(name: str) -> None:
    (settings,) = [
        one for one in of_kind(name, "ConfigMap") if one["metadata"]["name"].endswith("-settings")
    ]
    web = workloads(name)["web"]
    secrets = next(one for one in web["spec"]["volumes"] if one["name"] == "secrets")
    (mount,) = [one for one in container(web)["volumeMounts"] if one["name"] == "secrets"]

    there = {f"{mount['mountPath']}/{item['path']}" for item in secrets["secret"]["items"]}
    named = {
        value for key, value in settings["data"].items()
        if key.endswith("_FILE") and key not in {"LIVENESS_FILE", "SSL_CERT_FILE"}
    }  # fmt: skip
    assert named == there
    assert len(named) == len(SECRET_WORDS)
    mounts = {one["mountPath"] for one in container(web)["volumeMounts"]}
    assert ("SSL_CERT_FILE" in settings["data"]) == ("/run/consort/authorities" in mounts)
    assert Env(settings["data"]).flag("SECURE_COOKIES", default=False)
    assert not Env(settings["data"]).flag("DEBUG", default=True)


def grace(pod: Manifest) -> int:
    return int(pod["spec"]["terminationGracePeriodSeconds"])


def pause(pod: Manifest) -> int:
    return int(container(pod)["lifecycle"]["preStop"]["sleep"]["seconds"])


def argument(pod: Manifest, name: str) -> int:
    (found,) = [word for word in container(pod)["args"] if word.startswith(f"--{name}=")]
    return int(found.partition("=")[2])


def test_every_end_is_longer_than_what_has_to_end() -> None:
    from django.conf import settings

    pods = workloads("full")

    assert grace(pods["web"]) > pause(pods["web"]) + argument(pods["web"], "graceful-timeout")
    assert grace(pods["router"]) > pause(pods["router"]) + argument(pods["router"], "drain-seconds")
    assert grace(pods["worker"]) > settings.CELERY_TASK_TIME_LIMIT


def test_there_is_one_beat_and_never_two() -> None:
    (beat,) = [
        one for one in of_kind("full", "Deployment") if one["metadata"]["name"].endswith("-beat")
    ]

    assert (beat["spec"]["replicas"], beat["spec"]["strategy"]) == (1, {"type": "Recreate"})


def test_a_router_sees_its_own_token_only() -> None:
    mounts = {one["name"]: one for one in container(workloads("least")["router"])["volumeMounts"]}

    assert mounts["tokens"]["subPathExpr"] == "$(POD_NAME)"
    assert mounts["tokens"]["mountPath"] == "/run/consort/token"


def test_usage_outlives_the_pod_unless_it_is_asked_not_to() -> None:
    kept, lost = of_kind("least", "StatefulSet"), of_kind("ingress", "StatefulSet")

    assert kept[0]["spec"]["volumeClaimTemplates"][0]["metadata"]["name"] == "state"
    assert "volumeClaimTemplates" not in lost[0]["spec"]


def test_a_change_of_settings_makes_new_pods() -> None:
    stamps = [
        workloads(name)["web"]["metadata"]["annotations"]["consort.dev/settings"]
        for name in ("least", "full")
    ]

    assert stamps[0] != stamps[1]
