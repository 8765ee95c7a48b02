"""What the chart renders, started word for word: paths, ports and rights as in a pod."""

import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from deploy.compose import prepare
from tests.deploy.helm.chart import NAMESPACE, component, container, template
from tests.deploy.running import stores
from tests.deploy.running.from_chart import Kubelet
from tests.deploy.running.pods import Container, Pod, Site, site, until

pytestmark = [
    pytest.mark.processes,
    pytest.mark.xdist_group("pods"),
    pytest.mark.usefixtures("embedded_servers"),
]
ROUTER = "consort-router-0"
ROUTER_HOST = f"{ROUTER}.consort-router.{NAMESPACE}.svc"
HOST = "consort.example"
WEB = "http://127.0.0.1:8000"
MODEL = "granite-4.1-8b"
CHANGES = (
    "router.replicas=1,web.processes=1,worker.concurrency=2,secrets.authorities.secret=authorities"
)
SERVING = ("web", "worker", "beat")
Manifest = dict[str, Any]


@dataclass
class Release:
    """The running parts of one release, and its database."""

    site: Site
    database: str
    templates: dict[str, Manifest]
    containers: dict[str, Container]
    pods: dict[str, Pod] = field(default_factory=dict)

    def start(self, part: str) -> Pod:
        """Start a part, or start it again with the volumes that it had."""
        life = sum(pod.name.startswith(f"{part}-") for pod in self.site.pods)
        self.pods[part] = self.site.start(f"{part}-{life}", self.containers[part])
        return self.pods[part]

    def probe(self, part: str, which: str) -> bool:
        """What the kubelet would find."""
        probe = container(self.templates[part])[which]
        if "exec" in probe:
            return self.pods[part].execute(*probe["exec"]["command"]).returncode == 0
        asked = probe["httpGet"]
        ports = {
            one["name"]: one["containerPort"] for one in container(self.templates[part])["ports"]
        }
        url = f"{asked.get('scheme', 'HTTP').lower()}://127.0.0.1:{ports[asked['port']]}{asked['path']}"
        headers = {one["name"]: one["value"] for one in asked.get("httpHeaders", ())}
        return 200 <= self.site.ask(url, **headers).status < 400

    def waits_for(self, part: str, which: str, *, seconds: float = 120) -> None:
        """Until the probe finds what it looks for."""
        pod = self.pods[part]

        def holds() -> bool:
            assert pod.process.poll() is None, pod.log()
            return self.probe(part, which)

        until(holds, seconds=seconds, what=lambda: f"{which} of {pod.log()}")

    def people_make_a_pool(self, engine: str) -> str:
        """From the network of the pods; returns a key."""
        done = subprocess.run(
            [*self.site.inside, sys.executable, "-m", "tests.deploy.running.first_pool", engine],
            env=os.environ | {
                "DATABASE_URL": f"postgresql://consort@/{self.database}?host={stores.sockets()}",
                "BROKER_URL": "redis://127.0.0.1:6379/0", "CACHE_URL": "redis://127.0.0.1:6379/1",
            },
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def value(self, query: str) -> Any:
        """First value of the first row in the database."""
        with stores.connection(self.database) as row:
            found = row.execute(query.encode()).fetchone()
        return found and found[0]


@pytest.fixture(scope="module")
def release(
    tmp_path_factory: pytest.TempPathFactory, trees: dict[str, Path], embedded_servers: None
) -> Iterator[Release]:
    """Tables made by the hook, then every part but the live worker."""
    folder = tmp_path_factory.mktemp("pods")
    user = stores.sockets().stat().st_uid
    done = template("least", "--set", CHANGES)
    assert done.returncode == 0, done.stderr
    manifests = [one for one in yaml.safe_load_all(done.stdout) if one]
    workloads = {
        component(one): one
        for one in manifests
        if one["kind"] in {"Deployment", "StatefulSet", "Job"}
    }
    names = [HOST, "valkey", ROUTER_HOST, f"consort-router.{NAMESPACE}.svc"]
    with (
        stores.database() as database,
        site(folder / "roots", user=user, hosts=names) as opened,
        stores.cache_and_broker(opened, "--bind", "127.0.0.1", "--port", "6379"),
    ):
        kubelet = Kubelet(
            folder / "volumes", user=user, trees=trees, manifests=manifests,
            secrets=_secrets(folder, database),
        )  # fmt: skip
        templates = {part: one["spec"]["template"] for part, one in workloads.items()}
        containers = {
            part: kubelet.container(
                templates[part],
                ROUTER if part == "router" else part,
                claims=workloads[part]["spec"].get("volumeClaimTemplates", ()),
            )
            for part in ("upgrade", *SERVING, "router")
        }
        release = Release(opened, database, templates, containers)
        # Two at once, as after a hook that was cut off: the second waits, and finds all done.
        for upgrade in [release.start("upgrade"), release.start("upgrade")]:
            assert upgrade.process.wait(timeout=240) == 0, upgrade.log()
        for part in ("router", *SERVING):
            release.start(part)
        yield release


@pytest.fixture
def engine(release: Release) -> Iterator[str]:
    """A simulated engine that somebody runs in the same network."""
    command = (sys.executable, "-m", "routing.testbed.engine", "--port", "9000", "--model", MODEL)
    process = release.site.run(
        *command, "--accelerator", "amd-mi325x", "--role", "both", "--speed", "20"
    )
    yield "http://127.0.0.1:9000"
    process.kill()
    process.wait()


def _secrets(folder: Path, database: str) -> dict[str, dict[str, str]]:
    """Of whoever installs: stores, tokens, a certificate that the worker believes."""
    certificate = folder / "certificate"
    certificate.mkdir()
    prepare.certificate(certificate, f"*.consort-router.{NAMESPACE}.svc")
    files = {file.name: file.read_text() for file in certificate.iterdir()}
    return {
        "consort-secrets": {
            "secret-key": secrets.token_hex(32),
            "token-pepper": secrets.token_hex(32),
            "database-url": stores.address_of(database),
            "broker-url": "redis://valkey:6379/0",
            "cache-url": "redis://valkey:6379/1",
        },
        "consort-router-tokens": {ROUTER: secrets.token_hex(32)},
        "consort-router-tls": {"tls.crt": files["router.crt"], "tls.key": files["router.key"]},
        "authorities": {"ca.crt": files["router.crt"]},
    }


@pytest.mark.parametrize("part", SERVING)
@pytest.mark.parametrize("which", ["startupProbe", "readinessProbe", "livenessProbe"])
def test_a_part_becomes_ready_as_its_probes_see_it(release: Release, part: str, which: str) -> None:
    release.waits_for(part, which)


def test_a_router_is_ready_from_its_first_document_on_and_serves(
    release: Release, engine: str
) -> None:
    release.waits_for("router", "startupProbe")
    release.waits_for("router", "livenessProbe")
    assert not release.probe("router", "readinessProbe")

    secret = release.people_make_a_pool(engine)
    release.waits_for("router", "readinessProbe")
    messages = [{"role": "user", "content": "Say hello."}]
    body = json.dumps({"model": MODEL, "messages": messages})
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}

    def served() -> bool:
        # The first documents come before the engine has shown that it answers.
        path = "http://127.0.0.1:8080/v1/chat/completions"
        return release.site.ask(path, body, **headers).status == 200

    until(served, seconds=180, what=lambda: release.pods["worker"].log())


def test_the_hook_made_tables_and_registered_the_router(release: Release) -> None:
    found = release.value("SELECT admin_url || ' ' || token_reference FROM serving_router")

    assert found == f"https://{ROUTER_HOST}:8081 file:/run/consort/router-tokens/{ROUTER}"


def test_beat_broker_worker_and_router_work_together_over_tls(release: Release) -> None:
    """Beat sends, the worker takes, believes the certificate, and the router takes the token."""

    def heard() -> Any:
        return release.value("SELECT heard_at FROM serving_router")

    def state() -> str:
        failure = release.value("SELECT failure FROM serving_router")
        return f"{failure}; {release.pods['worker'].log()}"

    until(heard, seconds=120, what=state)

    assert release.value("SELECT failure FROM serving_router") == ""


def test_the_first_person_is_made_inside_the_pod_and_logs_in_behind_tls(release: Release) -> None:
    release.waits_for("web", "readinessProbe")
    command = ("python", "manage.py", "create_person", "dora", "--role", "platform-admin")

    made = release.pods["web"].execute(*command)

    assert made.returncode == 0, made.stderr
    assert made.stdout.split()[0] == "dora"
    roles = release.value("SELECT roles FROM tenancy_user WHERE username = 'dora'")
    assert roles == ["platform-admin"]
    form = release.site.ask(f"{WEB}/login", Host=HOST)
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form.text)
    assert token is not None
    fields = {
        "csrfmiddlewaretoken": token[1], "username": "dora", "password": made.stdout.split()[1],
    }  # fmt: skip
    # What a proxy passes on that has ended TLS.
    headers = {"Host": HOST, "Origin": f"https://{HOST}", "Cookie": form.cookies[0].split(";")[0]}
    headers["Content-Type"] = "application/x-www-form-urlencoded"
    entered = release.site.ask(f"{WEB}/login", urlencode(fields), **headers)
    assert entered.status == 302, entered.text
    (session,) = [one for one in entered.cookies if one.startswith("__Host-sessionid=")]
    assert {"Secure", "HttpOnly"} <= set(session.split("; "))
    elsewhere = headers | {"Origin": "https://elsewhere.example"}
    assert release.site.ask(f"{WEB}/login", urlencode(fields), **elsewhere).status == 403


def test_the_console_and_its_files_are_served(release: Release) -> None:
    release.waits_for("web", "readinessProbe")

    def status(path: str, host: str = HOST) -> int:
        return release.site.ask(f"{WEB}/{path}", Host=host).status

    assert status("login") == 200
    assert status("login", host="elsewhere.example") == 400
    (sheet, *_) = sorted(Path("controlplane/console/assets").rglob("*.css"))
    path = sheet.relative_to("controlplane/console/assets")
    assert status(f"static/{path}") == 200


@pytest.mark.parametrize("part", [*SERVING, "router"])
def test_no_process_has_a_right_or_a_place_to_write_beyond_its_own(
    release: Release, part: str
) -> None:
    pod = release.pods[part]
    release.waits_for(part, "startupProbe")

    assert pod.status("Uid").split()[0] != "0"
    assert (pod.status("CapEff"), pod.status("NoNewPrivs")) == ("0" * 16, "1")
    for folder in ("/", "/opt/consort", "/opt/venv", "/etc", "/run/consort", "/usr"):
        refused = pod.execute("touch", f"{folder}/x")
        assert "Read-only file system" in refused.stderr, folder
    own = ("/tmp/x", "/var/lib/consort/x")  # noqa: S108 - of the pod
    assert pod.execute("touch", *own).returncode == 0


def test_a_router_holds_its_own_token_and_no_other_secret(release: Release) -> None:
    release.waits_for("router", "startupProbe")
    listed = release.pods["router"].execute("ls", "/run/consort")

    assert listed.stdout.split() == ["tls", "token"]


def test_every_part_ends_when_it_is_asked_to_and_starts_on_what_it_left(release: Release) -> None:
    for part in (*SERVING, "router"):
        release.waits_for(part, "startupProbe")
    said = {part: len(release.pods[part].output.read_text()) for part in (*SERVING, "router")}

    codes = {part: release.pods[part].end(60) for part in said}

    assert codes == dict.fromkeys(codes, 0)
    for part, length in said.items():
        assert "Traceback" not in release.pods[part].output.read_text()[length:]
    for part in said:
        release.start(part)
    for part in said:
        release.waits_for(part, "startupProbe")
