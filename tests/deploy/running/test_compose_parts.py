"""The services of the Compose file, started word for word with the secrets of prepare.py."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deploy.compose import prepare
from tests.deploy.compose.file import FOLDER, Service, services
from tests.deploy.containers.dockerfiles import HOME
from tests.deploy.running import stores
from tests.deploy.running.pods import Container, Mount, Pod, Site, site, until

pytestmark = [
    pytest.mark.processes,
    pytest.mark.xdist_group("pods"),
    pytest.mark.usefixtures("embedded_servers"),
]
SERVING = ("router", "web", "worker", "beat")


@dataclass
class Host:
    """Running services, and their database."""

    database: str
    pods: dict[str, Pod]

    def value(self, query: str) -> Any:
        """First value of the first row in the database."""
        with stores.connection(self.database) as row:
            found = row.execute(query.encode()).fetchone()
        return found and found[0]

    def is_healthy(self, name: str) -> bool:
        """What Compose would find."""
        pod = self.pods[name]
        assert pod.process.poll() is None, pod.log()
        kind, *command = services()[name]["healthcheck"]["test"]
        assert kind == "CMD"
        return pod.execute(*command).returncode == 0


@pytest.fixture(scope="module")
def host(
    tmp_path_factory: pytest.TempPathFactory, trees: dict[str, Path], embedded_servers: None
) -> Iterator[Host]:
    """Tables made by the upgrade, then the rest."""
    folder = tmp_path_factory.mktemp("compose")
    user = stores.sockets().stat().st_uid
    made = folder / "made"
    made.mkdir()
    with stores.database() as database:
        _make_secrets(made, database, user=user)
        options = (str(made / "secrets/valkey.conf"), "--port", "6379")
        with (
            site(folder / "roots", user=user, hosts=["valkey", "router"]) as opened,
            stores.cache_and_broker(opened, *options),
        ):
            makes = Maker(folder, made, trees, user=user)
            upgrade = opened.start("upgrade", makes.container("upgrade", "control-plane"))
            assert upgrade.process.wait(timeout=240) == 0, upgrade.log()
            yield Host(database, {name: _started(opened, makes, name) for name in SERVING})


def _started(opened: Site, makes: "Maker", name: str) -> Pod:
    image = "router" if name == "router" else "control-plane"
    return opened.start(name, makes.container(name, image))


def _make_secrets(made: Path, database: str, *, user: int) -> None:
    """As an operator does; the database is reached by a socket here."""
    (made / "secrets").mkdir()
    (made / "secrets/database-url").write_text(stores.address_of(database))
    prepare.prepare(made, owner=(user, user))


class Maker:
    """Services as containers of this machine."""

    def __init__(self, folder: Path, made: Path, trees: dict[str, Path], *, user: int) -> None:
        self._folder, self._made, self._trees, self._user = folder, made, trees, user

    def container(self, name: str, image: str) -> Container:
        """One service with its secrets, scratch folders and volumes."""
        service = services()[name]
        return Container(
            image=image,
            arguments=service["command"],
            environment=service.get("environment", {}),
            mounts=[
                Mount(self._trees[image], HOME),
                *self._secrets(service),
                *self._scratch(name, service),
                *self._volumes(service),
                stores.mount(),
            ],
        )

    def _secrets(self, service: Service) -> Iterator[Mount]:
        for secret in service["secrets"]:
            yield Mount(self._made / "secrets" / secret, f"/run/secrets/{secret}")

    def _scratch(self, name: str, service: Service) -> Iterator[Mount]:
        for number, line in enumerate(service["tmpfs"]):
            place = self._folder / f"scratch-{name}-{number}"
            place.mkdir()
            os.chown(place, self._user, self._user)
            yield Mount(place, line.partition(":")[0], is_writable=True)

    def _volumes(self, service: Service) -> Iterator[Mount]:
        for line in service.get("volumes", ()):
            source, target, *mode = line.split(":")
            place = FOLDER / source if (FOLDER / source).is_file() else self._made / source
            yield Mount(place, target, is_writable=mode != ["ro"])


@pytest.mark.parametrize("name", SERVING)
def test_a_service_becomes_healthy(host: Host, name: str) -> None:
    until(lambda: host.is_healthy(name), seconds=120, what=host.pods[name].log)


def test_they_work_together(host: Host) -> None:
    """Passwords, certificate and token fit: the worker has heard the router."""

    def heard() -> Any:
        return host.value("SELECT heard_at FROM serving_router")

    def state() -> str:
        failure = host.value("SELECT failure FROM serving_router")
        return f"{failure}; {host.pods['worker'].log()}"

    until(heard, seconds=120, what=state)

    assert host.value("SELECT failure FROM serving_router") == ""
