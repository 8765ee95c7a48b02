"""Coverage-guided fuzzing of the readers, each for some minutes, from the kept inputs.

    python -m tests.fuzz --minutes 12 [--target body]

Runs the readers of `tests.fuzz.targets` under atheris, in a process each. A finding is written to
`var/fuzz/`; copy it to `tests/fuzz/corpus/<target>/`, where it stays as a test.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

CORPUS = Path(__file__).with_name("corpus")
WORK = Path("var/fuzz")


def main() -> int:
    """One process per target, one after the other; 1 when any found something."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=12.0, help="of all targets together")
    parser.add_argument("--target")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options, rest = parser.parse_known_args()
    if options.run:
        return _fuzz(options.run, rest)
    names = [options.target] if options.target else sorted(path.name for path in CORPUS.iterdir())
    return max(_process(name, seconds=options.minutes * 60 / len(names)) for name in names)


def _process(name: str, *, seconds: float) -> int:
    folder = WORK / name
    folder.mkdir(parents=True, exist_ok=True)
    line = [
        sys.executable, "-m", "tests.fuzz", "--run", name, str(folder), str(CORPUS / name),
        f"-max_total_time={int(seconds)}", f"-artifact_prefix={WORK}/{name}-", "-max_len=65536",
        "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1",
    ]  # fmt: skip
    log = WORK / f"{name}.log"
    with log.open("wb") as out:
        status = subprocess.run(line, stdout=out, stderr=out, check=False).returncode
    runs = [row for row in log.read_text(errors="replace").splitlines() if "number_of_exec" in row]
    print(f"{name:10} status {status}  {' '.join(runs) or 'see ' + str(log)}", flush=True)
    return min(1, abs(status))


def _fuzz(name: str, arguments: list[str]) -> int:
    import atheris

    with atheris.instrument_imports(include=["routing"]):
        from tests.fuzz.targets import TARGETS

    target = TARGETS[name]

    def once(data: bytes) -> None:
        target(data)

    atheris.Setup([f"{os.getpid()}", *arguments], once)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
