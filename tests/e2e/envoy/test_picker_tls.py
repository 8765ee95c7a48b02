"""Envoy asks its picker over TLS."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.envoy.processes import envoy, router
from tests.e2e.envoy.stack import KEY, WAYS, Gateways, picker
from tests.routing.servers.faces.certificates import CERTIFICATES
from tests.routing.servers.scripted import CHAT, chat

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("envoy")]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Certificate a and its key, which may be exchanged."""
    folder = tmp_path_factory.mktemp("tls")
    paths = folder / "tls.crt", folder / "tls.key"
    for path in paths:
        shutil.copyfile(CERTIFICATES / f"a{path.suffix}", path)
    return paths


@pytest.fixture(scope="module")
def secured(
    gateways: Gateways, files: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    """What an Envoy needs to know of a router whose picker speaks TLS."""
    options = ("--ext-proc-tls-cert", str(files[0]), "--ext-proc-tls-key", str(files[1]))
    folder = tmp_path_factory.mktemp("secured") / "router"
    with router(folder, *gateways.documents, options=options) as ready:
        yield {
            "documents": gateways.documents,
            "pickers": [picker(ready, "ext_proc")],
            "picker_tls": True,
        }


def asked(url: str) -> int:
    """Status of one request."""
    return httpx.post(url + CHAT, json=chat(max_tokens=2), headers=KEY, timeout=20).status_code


@pytest.mark.parametrize("way", ["ext_proc", "ext_proc-buffered"])
def test_an_envoy_that_believes_anybody_is_served(
    secured: dict[str, Any], tmp_path: Path, way: str
) -> None:
    with envoy(tmp_path / "e", **secured, **WAYS[way]) as url:
        assert asked(url) == 200


def test_without_tls_it_gets_nothing(secured: dict[str, Any], tmp_path: Path) -> None:
    plain = secured | {"picker_tls": False, "face": "ext_proc"}
    with envoy(tmp_path / "e", **plain) as url:
        assert asked(url) == 500


@pytest.mark.parametrize(
    ("authority", "name", "status"),
    [("a", "picker.test", 200), ("a", "other.test", 500), ("b", "picker.test", 500)],
)
def test_an_envoy_that_asks_who_it_is_believes_only_the_right_one(
    secured: dict[str, Any], tmp_path: Path, authority: str, name: str, status: int
) -> None:
    known = {"picker_ca": str(CERTIFICATES / f"{authority}.crt"), "picker_name": name}
    with envoy(tmp_path / "e", **secured, **known, face="ext_proc") as url:
        assert asked(url) == status
