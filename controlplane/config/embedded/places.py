"""Where the embedded servers keep their files, and as whom they run."""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
SYSTEM_HOME = Path("/var/lib/consort")
UNPRIVILEGED = 65534
"""`nobody`: PostgreSQL refuses to run as root, so root hands it to this user."""
MAX_SOCKET_PATH = 90
"""Unix socket paths end at 107 bytes on Linux; the file name needs the rest."""


@dataclass(frozen=True)
class Places:
    """Folders of one installation, told apart by the path of its `var` folder."""

    var: Path
    home: Path
    """Data and logs of the embedded servers."""
    sockets: Path
    as_root: bool

    @property
    def owner(self) -> int | None:
        """User id to run servers as; None is the current user."""
        return UNPRIVILEGED if self.as_root else None


def places() -> Places:
    """Folders for this process: `CONSORT_VAR`, or `var/` of the checkout.

    Root's servers live outside `var/`: they run as another user, who could enter it only if the
    folder and all its parents were opened to everybody.
    """
    var = Path(os.environ.get("CONSORT_VAR") or PROJECT / "var").resolve()
    key = hashlib.sha256(str(var).encode()).hexdigest()[:10]
    if os.geteuid() == 0:
        home = SYSTEM_HOME / key
        return Places(var=var, home=home, sockets=home / "s", as_root=True)
    home = var / "embedded"
    sockets = home / "s"
    if len(str(sockets)) > MAX_SOCKET_PATH:
        sockets = Path(tempfile.gettempdir()) / f"consort-{os.geteuid()}-{key}"
    return Places(var=var, home=home, sockets=sockets, as_root=False)


def prepare(where: Places) -> None:
    """Make the folders, open to their owner only; running it again changes nothing."""
    where.var.mkdir(mode=0o700, parents=True, exist_ok=True)
    where.var.chmod(0o700)
    if where.as_root:
        SYSTEM_HOME.mkdir(mode=0o755, parents=True, exist_ok=True)
    for folder in (where.home, where.sockets):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if where.owner is not None:
            os.chown(folder, where.owner, where.owner)
        folder.chmod(0o700)
