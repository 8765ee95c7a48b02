"""The Compose file: as hard as pods, secrets as files, the same processes as on Kubernetes."""

import re

import pytest

from tests.deploy.compose.file import (
    FOLDER,
    GIVEN,
    MissingVariableError,
    filled,
    services,
)
from tests.deploy.helm.chart import container, workloads

OURS = ("upgrade", "web", "worker", "live-worker", "beat", "router")
ALL = tuple(services())

by_service = pytest.mark.parametrize("name", ALL)


@by_service
def test_a_service_writes_only_where_it_says_and_can_become_nobody_else(name: str) -> None:
    service = services()[name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service
    assert service["pids_limit"] > 0
    assert service["logging"]["options"]["max-size"]


@by_service
def test_nobody_is_root_but_the_entry_point_of_the_database(name: str) -> None:
    service = services()[name]

    assert service.get("user", "") == ("" if name == "postgres" else "10001:10001")
    assert bool(service.get("cap_add")) == (name == "postgres")


@by_service
def test_a_service_is_looked_after(name: str) -> None:
    service = services()[name]

    if name == "upgrade":
        assert service["restart"] == "on-failure:3"
    else:
        assert service["healthcheck"]["test"][0] == "CMD"
        assert service["restart"] == "unless-stopped"


@by_service
def test_no_secret_stands_in_the_environment(name: str) -> None:
    for variable, value in services()[name].get("environment", {}).items():
        if re.search(r"KEY$|PEPPER|PASSWORD|TOKEN|_URL", variable.removesuffix("_FILE")):
            assert variable.endswith("_FILE"), variable
            assert value.startswith("/run/secrets/")


@by_service
def test_every_secret_that_is_read_is_given(name: str) -> None:
    service = services()[name]
    words = [*service.get("environment", {}).values(), *service.get("command", ())]
    read = {found for word in words for found in re.findall(r"/run/secrets/([\w.-]+)", word)}

    assert read <= set(service.get("secrets", ()))
    assert set(service.get("secrets", ())) <= set(filled()["secrets"])


def test_only_who_needs_the_stores_reaches_them() -> None:
    reach = {name for name, service in services().items() if "stores" in service["networks"]}

    assert reach == set(ALL) - {"router"}
    assert filled()["networks"]["stores"] == {"internal": True}


def test_ports_are_those_of_a_proxy_on_this_host() -> None:
    ports = {name: one["ports"] for name, one in services().items() if "ports" in one}

    assert ports == {"web": ["127.0.0.1:8000:8000"], "router": ["127.0.0.1:8080:8080"]}


def test_our_images_come_from_the_one_registry() -> None:
    images = {services()[name]["image"] for name in OURS}

    assert images == {
        "registry.example/consort/control-plane:0.1.0", "registry.example/consort/router:0.1.0",
    }  # fmt: skip


@pytest.mark.parametrize("missing", sorted(GIVEN))
def test_what_must_be_given_is_asked_for(missing: str) -> None:
    given = {name: value for name, value in GIVEN.items() if name != missing}

    with pytest.raises(MissingVariableError, match=r"in \.env"):
        filled(given)


def test_the_example_names_each_variable_that_must_be_given() -> None:
    example = (FOLDER / "example.env").read_text()

    used = set(re.findall(r"\$\{([A-Z_]+)", (FOLDER / "compose.yaml").read_text()))
    named = set(re.findall(r"^([A-Z_]+)=", example, re.M))
    assert set(GIVEN) <= named <= used


@pytest.mark.parametrize("name", ["web", "worker", "live-worker", "beat"])
def test_the_processes_are_those_of_the_chart(name: str) -> None:
    assert services()[name]["command"] == container(workloads("least")[name])["args"]


def test_the_router_is_that_of_the_chart_but_for_its_files() -> None:
    def options(words: list[str]) -> set[str]:
        return {word.partition("=")[0] for word in words}

    assert options(services()["router"]["command"]) == options(
        container(workloads("least")["router"])["args"]
    )


@pytest.mark.parametrize("name", ["web", "worker", "router"])
def test_every_end_has_as_long_as_in_a_pod(name: str) -> None:
    pod = workloads("least")[name]["spec"]
    pause = container({"spec": pod}).get("lifecycle", {}).get("preStop", {}).get("sleep", {})
    given = int(services()[name]["stop_grace_period"].removesuffix("s"))

    assert given >= pod["terminationGracePeriodSeconds"] - pause.get("seconds", 0)
