"""Where the server is and who asks: flags, then environment, then the file of profiles.

`~/.config/consort/config.toml` must be readable by its owner only:

    [profiles.default]
    url = "https://consort.example"
    token = "…"
    ca_file = "/etc/ssl/example.pem"
"""

import argparse
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controlplane.cli.errors import USAGE, CliError

NAMES = ("url", "token", "ca_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a command needs to reach the server."""

    url: str
    token: str = field(repr=False)
    ca_file: str | None = None
    is_debug: bool = False


def read(flags: argparse.Namespace, environment: Mapping[str, str], *, home: Path) -> Settings:
    """The settings in force. Raises CliError when there is no address or no token."""
    profile = _profile(home / ".config" / "consort" / "config.toml", flags.profile)
    found = {
        name: getattr(flags, name, None)
        or environment.get(f"CONSORT_{name.upper()}")
        or profile.get(name)
        for name in NAMES
    }
    for name in ("url", "token"):
        if not found[name]:
            raise CliError(
                f"There is no {name}.",
                code=USAGE,
                hint=f"Give --{name}, set CONSORT_{name.upper()}, or write it to a profile in"
                " ~/.config/consort/config.toml.",
            )
    return Settings(
        url=str(found["url"]).rstrip("/"),
        token=str(found["token"]),
        ca_file=found["ca_file"] or None,
        is_debug=bool(flags.debug),
    )


def _profile(path: Path, name: str | None) -> dict[str, Any]:
    if not path.is_file():
        if name:
            raise CliError(f"There is no profile {name}: {path} does not exist.", code=USAGE)
        return {}
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise CliError(f"{path} is readable by others.", code=USAGE, hint=f"chmod 600 {path}")
    try:
        profiles = tomllib.loads(path.read_text()).get("profiles", {})
    except tomllib.TOMLDecodeError as error:
        raise CliError(f"{path} is not TOML: {error}.", code=USAGE) from error
    if name and name not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        raise CliError(f"There is no profile {name}. Known: {known}.", code=USAGE)
    found = profiles.get(name or "default", {})
    return found if isinstance(found, dict) else {}
