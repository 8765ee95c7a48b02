"""A kubeconfig read as data: no program is run, and only files beside it are opened."""

import base64
import binascii
from pathlib import Path
from typing import Any

import yaml

from inventory.kubernetes.connection import Connection, checked, read_file
from inventory.kubernetes.errors import CredentialsError

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FORBIDDEN = {
    "exec": "kubeconfig-runs",
    "auth-provider": "kubeconfig-runs",
    "username": "kubeconfig-password",
    "password": "kubeconfig-password",
    "as": "kubeconfig-impersonates",
    "as-uid": "kubeconfig-impersonates",
    "as-groups": "kubeconfig-impersonates",
}
"""Keys of a user that are not followed, with the code of the sentence that says so."""


def read_kubeconfig(text: str, folder: Path, reference: str) -> Connection:
    """The connection of the current context, or of the only one.

    `folder` holds the files that it may name. Raises CredentialsError.
    """
    document = _document(text)
    context_name, context = _context(document)
    cluster = _named(document, "clusters", "cluster", context.get("cluster"))
    user = _named(document, "users", "user", context.get("user")) if context.get("user") else {}
    _refuse(user, cluster)
    return checked(
        Connection(
            server=_text(cluster, "server"),
            ca=_material(cluster, "certificate-authority", folder),
            token=_token(user, folder),
            certificate=_material(user, "client-certificate", folder),
            key=_material(user, "client-key", folder),
            tls_server_name=_text(cluster, "tls-server-name"),
            skips_verification=bool(cluster.get("insecure-skip-tls-verify")),
            context=context_name or reference,
        )
    )


def _document(text: str) -> dict[str, Any]:
    try:
        document = yaml.load(text, _LOADER)  # noqa: S506 - a safe loader, written in C where there is one
    except (yaml.YAMLError, ValueError, RecursionError):
        raise CredentialsError("kubeconfig-not-yaml") from None
    if not isinstance(document, dict):
        raise CredentialsError("kubeconfig-empty")
    return document


def _context(document: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    name = document.get("current-context")
    contexts = document.get("contexts")
    if not name and isinstance(contexts, list) and len(contexts) == 1:
        only = contexts[0]
        name = only.get("name") if isinstance(only, dict) else None
    return _shown(name), _named(document, "contexts", "context", name)


def _named(document: dict[str, Any], plural: str, singular: str, name: Any) -> dict[str, Any]:
    """The entry of that name in a list of a kubeconfig."""
    entries = document.get(plural)
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and name and entry.get("name") == name:
            found = entry.get(singular)
            if isinstance(found, dict):
                return found
    raise CredentialsError(
        "kubeconfig-entry-missing",
        name=_shown(name),
        kind=plural,
    )


def _refuse(user: dict[str, Any], cluster: dict[str, Any]) -> None:
    for key, code in _FORBIDDEN.items():
        if user.get(key):
            raise CredentialsError(code, key=key)
    if cluster.get("proxy-url"):
        raise CredentialsError(
            "kubeconfig-proxy-url",
        )


def _token(user: dict[str, Any], folder: Path) -> str:
    inline = _text(user, "token")
    name = _text(user, "tokenFile")
    return inline or (_beside(name, folder) if name else "").strip()


def _material(entry: dict[str, Any], key: str, folder: Path) -> str:
    """PEM from `<key>-data`, or from the file that `key` names; empty when neither is there."""
    inline = _text(entry, f"{key}-data")
    if not inline:
        name = _text(entry, key)
        return _beside(name, folder) if name else ""
    try:
        return base64.b64decode(inline, validate=True).decode()
    except (binascii.Error, ValueError):
        raise CredentialsError("kubeconfig-not-base64", key=f"{key}-data") from None


def _beside(name: str, folder: Path) -> str:
    return read_file(folder / name, folder)


def _text(entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise CredentialsError("kubeconfig-wrong-type", key=key)
    return value


def _shown(name: Any) -> str:
    return str(name)[:100] if name else ""
