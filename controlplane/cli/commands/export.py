"""`consort export`: a pool as objects of a cluster, printed or as a bundle for `kubectl kustomize`.

A bundle is a folder with one file for each object and a `kustomization.yaml` that lists them, so
that it can lie in a repository and a change of the pool is a readable difference.
"""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from controlplane.cli.commands.base import Result, shared
from controlplane.cli.errors import SERVER, USAGE, CliError

if TYPE_CHECKING:
    from controlplane.cli.client import Client

KUSTOMIZATION = "kustomization.yaml"
_MARK = "# Written by consort export; --replace writes it again.\n"
_PLAIN = re.compile(r"[a-z0-9.-]+")


def add(commands: Any) -> None:
    """Declare it."""
    parser = commands.add_parser(
        "export",
        help="a pool as objects of a cluster, in a chosen format",
        description="Writes what the pool is at present; nothing is changed anywhere. Formats and"
        " what each can express are described in docs/kubernetes.md.",
    )
    parser.add_argument("pool", help="name or id of the pool")
    parser.add_argument("--renderer", default="plain", help="format: plain, kserve, llm-d, ...")
    parser.add_argument("--cluster", help="cluster, when the pool's engines are in several")
    parser.add_argument("--policy", help="in place of the pool's own, such as llm-d-default")
    parser.add_argument("--out", type=Path, help="folder for a bundle; printed without it")
    parser.add_argument(
        "--replace", action="store_true", help="write a bundle over an earlier one of the folder"
    )
    shared(parser, export)


def export(client: "Client", flags: argparse.Namespace) -> Result:
    """Ask for the text, and print it or lay it out in a folder."""
    import yaml

    text = client.text(
        f"pools/{quote(flags.pool, safe='')}/manifests",
        renderer=flags.renderer,
        cluster=flags.cluster,
        policy=flags.policy,
    )
    try:
        manifests = [one for one in yaml.safe_load_all(text) if one]
    except yaml.YAMLError as error:
        raise CliError(f"The server's answer is no YAML: {error}", code=SERVER) from error
    if flags.out is None:
        return Result(data=manifests, lines=text.rstrip("\n"))
    names = _write(flags.out, manifests, replace=flags.replace)
    return Result(
        data={"folder": str(flags.out), "files": names},
        lines="\n".join(names),
        notes=(f"Written: {flags.out}. Build it: kubectl kustomize {flags.out}",),
    )


def _write(folder: Path, manifests: list[Any], *, replace: bool) -> list[str]:
    """Files of the bundle by name. Raises CliError for a folder that is in use."""
    import yaml

    files = {_name(manifest): manifest for manifest in manifests}
    if len(files) != len(manifests):
        raise CliError("Two objects have the same kind and name.", code=SERVER)
    _clear(folder, replace=replace)
    try:
        for name, manifest in sorted(files.items()):
            (folder / name).write_text(yaml.safe_dump(manifest, sort_keys=True), encoding="utf-8")
        listed = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": sorted(files),
        }
        (folder / KUSTOMIZATION).write_text(
            _MARK + yaml.safe_dump(listed, sort_keys=True), encoding="utf-8"
        )
    except OSError as error:
        raise CliError(f"{folder} cannot be written: {error}.", code=USAGE) from error
    return sorted(files)


def _clear(folder: Path, *, replace: bool) -> None:
    """An empty folder; of an earlier bundle only its own files are taken away."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = sorted(path.name for path in folder.iterdir())
        if not there:
            return
        if not replace or KUSTOMIZATION not in there:
            raise CliError(
                f"{folder} is not empty.",
                code=USAGE,
                hint="Name an empty folder, or write over an earlier bundle with --replace.",
            )
        for name in _listed(folder):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise CliError(f"{folder} cannot be used: {error}.", code=USAGE) from error


def _listed(folder: Path) -> list[str]:
    """Files that an earlier bundle wrote; a kustomization of somebody else's is left alone."""
    import yaml

    text = (folder / KUSTOMIZATION).read_text("utf-8")
    if not text.startswith(_MARK):
        raise CliError(
            f"{folder / KUSTOMIZATION} is not one of consort export.",
            code=USAGE,
            hint="Name an empty folder.",
        )
    found = yaml.safe_load(text)["resources"]
    return [name for name in found if isinstance(name, str) and _PLAIN.fullmatch(name)]


def _name(manifest: Any) -> str:
    """Name of an object's file; what a file may not be called is refused."""
    try:
        name = f"{manifest['kind']}-{manifest['metadata']['name']}.yaml".lower()
    except (KeyError, TypeError) as error:
        raise CliError("The server's answer holds no objects.", code=SERVER) from error
    if not _PLAIN.fullmatch(name) or name == KUSTOMIZATION:
        raise CliError(f"An object is called '{name}', which no file may be.", code=SERVER)
    return name
