"""Where helm and kubectl are on this machine; nothing of the product needs them to run.

`make helm` puts both into `.venv-helm/bin`: `python -m deploy.tools .venv-helm` takes them out of a
wheel, in which they lie three archives deep. Versions change what helm prints, so our own come
before those of the search path.
"""

import io
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

OWN = Path(__file__).resolve().parents[1] / ".venv-helm" / "bin"
PACKED = "*.jsii.tgz"
LAYER = "layer.zip"
PROGRAMS = ("helm", "kubectl")


class NotPackedError(Exception):
    """The wheel does not hold what it should; the message says what is missing."""


def find(program: str, own: Path = OWN) -> str | None:
    """Our own program, else that of the search path; `None` where there is neither."""
    packed = own / program
    return str(packed) if packed.exists() else shutil.which(program)


def unpack(environment: Path) -> list[Path]:
    """Put the programs of an installed wheel into the environment's `bin`. Raises NotPackedError.

    Nothing is done where the wheel is not for this machine and so was not installed.
    """
    archives = sorted(environment.glob(f"lib/*/site-packages/**/{PACKED}"))
    if not archives:
        return []
    with tarfile.open(archives[0]) as outer:
        layer = _member(outer, archives[0])
    with zipfile.ZipFile(io.BytesIO(layer)) as inner:
        written = [_write(inner, program, environment / "bin") for program in PROGRAMS]
    # 38 MB that are not read again.
    archives[0].unlink()
    return written


def _member(archive: tarfile.TarFile, path: Path) -> bytes:
    names = [name for name in archive.getnames() if Path(name).name == LAYER]
    file = archive.extractfile(names[0]) if names else None
    if file is None:
        raise NotPackedError(f"{path} holds no {LAYER}.")
    return file.read()


def _write(archive: zipfile.ZipFile, program: str, folder: Path) -> Path:
    name = f"{program}/{program}"
    if name not in archive.namelist():
        raise NotPackedError(f"The layer holds no {name}.")
    target, part = folder / program, folder / f"{program}.part"
    folder.mkdir(parents=True, exist_ok=True)
    part.write_bytes(archive.read(name))
    part.chmod(0o755)
    part.replace(target)
    return target


def main(arguments: Sequence[str]) -> int:
    """0, or 2 when the wheel is not as expected."""
    try:
        unpack(Path(arguments[0]))
    except (NotPackedError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
