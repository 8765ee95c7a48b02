"""Make the secrets and folders of the Compose file, once: `python3 prepare.py`.

What is there already stays, so that running it again is safe. Files are readable by the user of our
containers alone (CONSORT_UID of .env); only root can give files to somebody else, so whoever is not
root sets CONSORT_UID and CONSORT_GID to their own. Needs Python 3.11 and openssl.
"""

import os
import secrets
import subprocess  # fixed program, no shell
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAME = "router"
"""Of the router's container, which its certificate is for."""
VALID_DAYS = 3650


class PreparationError(Exception):
    """A secret cannot be made; the message says why."""


def prepare(folder: Path, *, owner: tuple[int, int]) -> list[str]:
    """Make what is missing below a folder and return its names. Raises PreparationError."""
    place, state, clusters = folder / "secrets", folder / "data" / "router", folder / "clusters"
    for each in (place, state.parent, state, clusters):
        each.mkdir(mode=0o700, exist_ok=True)
    made = []
    if not (place / "router.key").exists():
        certificate(place, NAME)
        made += ["router.crt", "router.key"]
    made += [name for name, content in _contents(place).items() if _write(place / name, content)]
    for each in (place, state, clusters, *place.iterdir()):
        _give(each, owner)
    return made


def _contents(place: Path) -> dict[str, Callable[[], str]]:
    """What each file holds; addresses repeat passwords, so those come first."""

    def kept(name: str) -> str:
        return (place / name).read_text().strip()

    def password_of_valkey() -> str:
        line = next(
            one for one in kept("valkey.conf").splitlines() if one.startswith("requirepass")
        )
        return line.split()[1]

    def fresh() -> str:
        return secrets.token_hex(32)

    return {
        # Of a site with authorities of its own, append theirs.
        "authorities": lambda: kept("router.crt"),
        "secret-key": fresh,
        "token-pepper": fresh,
        "router-token": fresh,
        "postgres-password": fresh,
        "valkey.conf": lambda: "\n".join(
            [
                f"requirepass {fresh()}", "bind 0.0.0.0", "protected-mode yes", 'save ""',
                "appendonly no", "maxmemory 256mb", "maxmemory-policy noeviction",
            ]
        ),
        "database-url": lambda: (
            f"postgresql://consort:{kept('postgres-password')}@postgres:5432/consort"
        ),
        "broker-url": lambda: f"redis://:{password_of_valkey()}@valkey:6379/0",
        "cache-url": lambda: f"redis://:{password_of_valkey()}@valkey:6379/1",
    }  # fmt: skip


def _write(path: Path, content: Callable[[], str]) -> bool:
    """True if the file was not there."""
    if path.exists():
        return False
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(content() + "\n")
    part.rename(path)
    return True


def certificate(place: Path, name: str) -> None:
    """Make router.crt and router.key, good for a name; it vouches for itself.

    Raises PreparationError.
    """
    key, chain = place / "router.key", place / "router.crt"
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-keyout", str(key), "-out", str(chain), "-days", str(VALID_DAYS),
        "-subj", "/CN=consort-router", "-addext", f"subjectAltName=DNS:{name}",
        "-addext", "keyUsage=critical,digitalSignature,keyCertSign",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except OSError as error:
        raise PreparationError(f"openssl cannot be run: {error.strerror}.") from error
    if done.returncode:
        raise PreparationError(f"openssl made no certificate: {done.stderr.strip()}")


def _give(path: Path, owner: tuple[int, int]) -> None:
    path.chmod(0o700 if path.is_dir() else 0o400)
    if (path.stat().st_uid, path.stat().st_gid) == owner:
        return
    try:
        os.chown(path, *owner)
    except PermissionError as error:
        raise PreparationError(
            f"{path} cannot be given to user {owner[0]}: run this as root, or set CONSORT_UID and"
            f" CONSORT_GID in .env to your own ids, {os.getuid()} and {os.getgid()}."
        ) from error


def read_owner(file: Path) -> tuple[int, int]:
    """CONSORT_UID and CONSORT_GID of an .env file; 10001 where it does not say."""
    lines = file.read_text().splitlines() if file.exists() else []
    values = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return int(values.get("CONSORT_UID") or 10001), int(values.get("CONSORT_GID") or 10001)


def main() -> int:
    """0, or 2 with a sentence."""
    try:
        made = prepare(HERE, owner=read_owner(HERE / ".env"))
    except (PreparationError, OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"Made: {', '.join(made) or 'nothing, all is there'}.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
