"""Rules of model files on plain values: sources, what is inside a site, what was seen; no query."""

import re
from collections.abc import Collection
from typing import Literal
from urllib.parse import urlsplit

State = Literal["unknown", "missing", "fetching", "checking", "present", "wrong"]
Sight = Literal["unknown", "missing", "fetching", "checking", "there", "failed"]
"""What a target says: `there` with the checksum that it counted."""

_CLAIM = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9._-]+)+(@sha256:[0-9a-f]{64}|:[\w.-]+)")
_BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\s?#]*)?")
_FOLDER = re.compile(r"/[^\x00\n\\:]*")


def source_problem(kind: str, uri: str, endpoint: str, node_folder: str) -> tuple[str, str] | None:
    """(field, what is allowed there) of the first field that does not fit the kind, else None."""
    rules = {
        "pvc": (_CLAIM, "the name of a PersistentVolumeClaim"),
        "node-path": (_FOLDER, "an absolute folder without ':'"),
        "oci": (_IMAGE, "registry/repository:tag or registry/repository@sha256:digest"),
        "s3": (_BUCKET, "s3://bucket/prefix"),
    }
    pattern, allowed = rules[kind]
    if not pattern.fullmatch(uri) or ".." in uri.split("/"):
        return "uri", allowed
    if kind == "s3" and host_of_address(endpoint) is None:
        return "endpoint", "the address of the object store, such as https://s3.example.internal"
    if kind != "s3" and endpoint:
        return "endpoint", "nothing: only an object store has an address"
    return _folder_problem(kind, node_folder)


def _folder_problem(kind: str, folder: str) -> tuple[str, str] | None:
    if kind == "s3" and not folder:
        return "node_folder", "the absolute folder to which the files are copied"
    if kind != "s3" and folder:
        return "node_folder", "nothing: only files of an object store are copied to a folder"
    if folder and (not _FOLDER.fullmatch(folder) or ".." in folder.split("/")):
        return "node_folder", "an absolute folder without ':'"
    return None


def source_host(kind: str, uri: str, endpoint: str) -> str | None:
    """Host that is asked for the files; None where nobody is asked over a network."""
    if kind == "oci":
        return uri.partition("/")[0].rpartition(":")[0].lower() or uri.partition("/")[0].lower()
    return host_of_address(endpoint) if kind == "s3" else None


def host_of_address(address: str) -> str | None:
    """Host of an http or https address, lower case; None if it is none."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return None
    usable = parts.scheme in {"http", "https"} and not parts.query and not parts.fragment
    return host if usable and host and parts.username is None else None


def is_inside(host: str, inside: Collection[str]) -> bool:
    """Whether a host is one of a site's own; `.example.internal` stands for all below it."""
    name = host.lower().rstrip(".")
    for entry in inside:
        known = entry.lower().rstrip(".")
        if name == known or (known.startswith(".") and name.endswith(known)):
            return True
    return False


def judged(sight: Sight, seen_sha256: str, stated_sha256: str) -> State:
    """State of an artefact on a node: files that are there are the stated ones, or wrong."""
    if sight == "there":
        is_stated = not stated_sha256 or seen_sha256 == stated_sha256
        return "present" if is_stated else "wrong"
    return "unknown" if sight == "failed" else sight


def seconds_to_load(size_bytes: int | None, bytes_per_second: int | None) -> float | None:
    """Time to read the files once; None if the size or the speed is unknown."""
    if size_bytes is None or not bytes_per_second:
        return None
    return size_bytes / bytes_per_second
