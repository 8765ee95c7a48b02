"""`consort export`: printed, or a bundle that kubectl builds."""

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from pytest_django.live_server_helper import LiveServer

from controlplane.cli.commands.export import KUSTOMIZATION
from controlplane.cli.main import main
from deploy.tools import find
from tests.controlplane.serving.factories import make_assigned, make_fleet_node, make_pool
from tests.controlplane.serving.renderers.golden_cases import FOLDER
from tests.factories import ALL_SCOPES, make_api_token, make_olga

TEXT = (FOLDER / "plain-vllm-nvidia-disaggregated.yaml").read_text("utf-8")


class _Server(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        status, text = self.server.answer  # type: ignore[attr-defined]
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    server.asked, server.answer = [], (200, TEXT)  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    monkeypatch.setenv("CONSORT_URL", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setenv("CONSORT_TOKEN", "secret")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_it_prints_what_the_server_wrote(server: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["export", "granite", "--renderer", "plain", "-o", "table"])

    assert code == 0
    assert list(yaml.safe_load_all(capsys.readouterr().out)) == list(yaml.safe_load_all(TEXT))
    assert server.asked == ["/api/v1/pools/granite/manifests?renderer=plain"]


def test_a_name_cannot_leave_the_pools(server: Any) -> None:
    main(["export", "../clusters", "-o", "json"])

    assert server.asked[0].startswith("/api/v1/pools/..%2Fclusters/manifests")


def test_a_bundle_builds_to_the_same_objects(server: Any, tmp_path: Path) -> None:
    kubectl = find("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not there: 'make helm' installs it (Linux on x86_64).")
    main(["export", "granite", "--out", str(tmp_path / "bundle")])

    built = subprocess.run(
        [kubectl, "kustomize", str(tmp_path / "bundle")],
        capture_output=True, text=True, timeout=60, check=True, env={"HOME": str(tmp_path)},
    )  # fmt: skip

    assert _by_name(yaml.safe_load_all(built.stdout)) == _by_name(yaml.safe_load_all(TEXT))


def test_a_bundle_written_again_forgets_what_is_gone(server: Any, tmp_path: Path) -> None:
    main(["export", "granite", "--out", str(tmp_path)])
    (tmp_path / "notes.txt").write_text("mine")
    server.answer = (200, (FOLDER / "plain-autoscaled.yaml").read_text("utf-8"))

    code = main(["export", "granite", "--out", str(tmp_path), "--replace"])

    listed = yaml.safe_load((tmp_path / KUSTOMIZATION).read_text())["resources"]
    assert code == 0
    assert {path.name for path in tmp_path.iterdir()} == {*listed, KUSTOMIZATION, "notes.txt"}


@pytest.mark.parametrize("flags", [[], ["--replace"]])
def test_a_folder_in_use_is_left_alone(
    server: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str]
) -> None:
    (tmp_path / KUSTOMIZATION).write_text("resources: [precious.yaml]\n")
    (tmp_path / "precious.yaml").write_text("mine")

    code = main(["export", "granite", "--out", str(tmp_path), *flags])

    assert code == 2
    assert (tmp_path / "precious.yaml").read_text() == "mine"
    assert "empty" in capsys.readouterr().err


def test_a_refusal_is_a_sentence_and_an_exit_code(
    server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = {"detail": "Pool granite cannot be written as kserve.", "hint": "Choose another."}
    server.answer = (422, json.dumps(problem))

    code = main(["export", "granite", "--renderer", "kserve"])

    assert code == 4
    assert "Choose another." in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "kind: A\n---\nkind: B\n",
        "- a\n",
        "kind: A\nmetadata: {name: ../../x}\n",
        "kind: A\nmetadata: {name: x}\n---\nkind: A\nmetadata: {name: x}\n",
        "a: [\n",
    ],
)
def test_an_answer_that_is_no_bundle_writes_nothing(server: Any, tmp_path: Path, text: str) -> None:
    server.answer = (200, text)

    code = main(["export", "granite", "--out", str(tmp_path / "bundle")])

    assert code == 8
    assert not (tmp_path / "bundle").exists()


def _by_name(manifests: Any) -> dict[tuple[str, str], Any]:
    return {(one["kind"], one["metadata"]["name"]): one for one in manifests}


@pytest.mark.usefixtures("clean_cache")
def test_a_pool_of_the_real_api_becomes_a_bundle_that_builds(
    live_server: LiveServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _token, secret = make_api_token(owner=make_olga(), scopes=list(ALL_SCOPES))
    monkeypatch.setenv("CONSORT_URL", live_server.url)
    monkeypatch.setenv("CONSORT_TOKEN", secret)
    pool = make_pool(
        engine="vllm",
        containers={
            "namespace": "llm", "images": {"amd": "registry.example/vllm:1"},
            "llmd": {"picker": "registry.example/epp:1", "sidecar": "registry.example/side:1"},
        },
    )  # fmt: skip
    for role in ("prefill", "decode"):
        make_assigned(pool, make_fleet_node("amd-mi325x"), role=role)
    flags = ["--renderer", "llm-d", "--out", str(tmp_path / "bundle")]

    refused = main(["export", pool.slug, *flags])
    code = main(["export", pool.slug, *flags, "--policy", "llm-d-default"])

    assert (refused, code) == (4, 0)
    kinds = {path.name.partition("-")[0] for path in (tmp_path / "bundle").iterdir()}
    assert {"deployment", "inferencepool", "configmap", "role", KUSTOMIZATION} <= kinds
