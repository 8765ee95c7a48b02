"""The chart: what it makes, word for word; what it refuses, with a sentence."""

from typing import Any

import pytest
import yaml
from kubernetes import client

from tests.controlplane.serving.renderers import checking
from tests.deploy.helm.chart import (
    CHART,
    GOLDEN,
    NAMES,
    VALUES,
    golden_text,
    of_kind,
    rendered,
    run,
    template,
)

TYPED: dict[tuple[str, str], Any] = {
    ("apps/v1", "Deployment"): client.V1Deployment,
    ("apps/v1", "StatefulSet"): client.V1StatefulSet,
    ("batch/v1", "Job"): client.V1Job,
    ("networking.k8s.io/v1", "Ingress"): client.V1Ingress,
    ("networking.k8s.io/v1", "NetworkPolicy"): client.V1NetworkPolicy,
    ("policy/v1", "PodDisruptionBudget"): client.V1PodDisruptionBudget,
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): client.V1ClusterRole,
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): client.V1ClusterRoleBinding,
    ("rbac.authorization.k8s.io/v1", "Role"): client.V1Role,
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): client.V1RoleBinding,
    ("v1", "ConfigMap"): client.V1ConfigMap,
    ("v1", "Service"): client.V1Service,
    ("v1", "ServiceAccount"): client.V1ServiceAccount,
}

by_name = pytest.mark.parametrize("name", NAMES)


@by_name
def test_it_makes_what_the_golden_file_says(name: str) -> None:
    """To accept a change: python -m tests.deploy.helm.write_golden."""
    assert golden_text(name) == (GOLDEN / f"{name}.yaml").read_text()


def test_there_is_no_golden_file_too_many() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.yaml")) == list(NAMES)


@by_name
def test_helm_finds_no_fault(name: str) -> None:
    done = run("lint", str(CHART), "--strict", "--values", str(VALUES / f"{name}.yaml"))

    assert done.returncode == 0, done.stdout


@by_name
def test_every_field_is_one_that_the_cluster_knows(name: str) -> None:
    for manifest in rendered(name):
        if manifest["kind"] == "HTTPRoute":
            checking.check(manifest)
            continue
        TYPED[manifest["apiVersion"], manifest["kind"]].model_validate(manifest)


@by_name
def test_names_are_short_enough_for_what_the_cluster_adds(name: str) -> None:
    """A pod of a StatefulSet is a host name; a Job's pod gets six characters more."""
    for manifest in rendered(name):
        assert len(manifest["metadata"]["name"]) <= 57


def test_a_long_name_of_a_release_is_cut() -> None:
    done = template("least", "--set", "fullnameOverride=" + "x" * 40)

    assert done.returncode == 0
    assert {len(one["metadata"]["name"]) <= 63 for one in yaml.safe_load_all(done.stdout) if one}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["image.registry="], "image.registry is empty: name the registry"),
        (["hosts=null"], "hosts is empty: list the names"),
        (["secrets.name="], "secrets.name is empty: make a Secret with the keys secret-key"),
        (["secrets.authorities.secret=a", "secrets.authorities.configMap=b"], "choose one"),
        (["settings.SECRET_KEY=x"], "settings.SECRET_KEY is a secret, and settings stand in a"),
        (["settings.DATABASE_URL=x"], "settings.DATABASE_URL is a secret"),
        (["settings.DEBUG=true"], "settings.DEBUG is set by the chart"),
        (["settings.SECRET_KEY_FILE=/x"], "settings.SECRET_KEY_FILE names a file"),
        (["router.tokens.secret="], "make a Secret with a token for each of 2 routers"),
        (["router.tls.secret="], r"Make a certificate for \*.consort-router.serving.svc"),
        (["gateway.enabled=true"], "gateway.parentRefs is empty"),
        (["gateway.enabled=true", "ingress.enabled=true"], "choose one way in"),
        (["ingress.enabled=true"], "ingress.tlsSecret is empty"),
        (["kubernetes.adoption=true", "kubernetes.discovery=false"], "turn both on, or both off"),
        (["router.replicas=0", "gateway.inferenceHosts={m.example}"], "nobody to route to"),
        (["gateway.inferenceHosts={consort.example}"], "stands in hosts and in inferenceHosts"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_values_that_contradict_are_refused_with_a_sentence(
    changes: list[str], sentence: str
) -> None:
    # As texts, but for what is no text.
    sets = [
        word
        for change in changes
        for word in (
            ("--set", change)
            if change.startswith(("hosts", "router.rep", "gateway", "ingress", "kubernetes"))
            else ("--set-string", change)
        )
    ]
    done = template("least", *sets)

    assert done.returncode != 0
    assert sentence.replace("\\", "") in done.stderr


@pytest.mark.parametrize(
    "change",
    [
        "web.replicas=0", "beat.replicas=2", "image.registyr=x", "worker.concurrency=many",
        "router.publicUrl=models.example", "kubernetes.kinds={crystal-ball}",
        "networkPolicy.database.ports={0}", "image.router.digest=sha256:short",
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_form_or_name_is_refused(change: str) -> None:
    done = template("least", "--set", change)

    assert done.returncode != 0
    assert "don't meet the specifications of the schema" in done.stderr


def test_every_image_comes_from_the_one_registry() -> None:
    images = {
        part["image"]
        for one in of_kind("full", "Deployment", "StatefulSet", "Job")
        for part in one["spec"]["template"]["spec"]["containers"]
    }

    digest = "sha256:" + "a" * 64
    assert images == {
        f"registry.example:5000/mirror/consort/control-plane@{digest}",
        "registry.example:5000/mirror/consort/router:0.1.0-fips",
    }


def test_every_value_has_its_line_in_the_readme() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    table = (CHART / "README.md").read_text()

    missing = [path for path in _paths(values) if f"`{path}`" not in table]

    assert missing == []


def _paths(values: dict[str, Any], above: str = "") -> list[str]:
    """Dotted names of values; maps that are a value themselves count as one."""
    whole = {"settings", "resources", "nodeSelector", "podAnnotations", "annotations"}
    found = []
    for name, value in values.items():
        path = f"{above}{name}"
        if isinstance(value, dict) and value and name not in whole:
            found += _paths(value, f"{path}.")
        else:
            found.append(path)
    return found
