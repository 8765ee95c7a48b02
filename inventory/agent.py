"""Runs a vendor's probe command on a node and prints the report as JSON; needs no Django.

    python -m inventory.agent                 the vendor whose tool is installed
    python -m inventory.agent --vendor amd    this vendor
    python -m inventory.agent --folder /srv/models/granite    counts files of models, too

Counting reads every byte, so it belongs into a run of its own, some times a day.

Exit codes: 0 report printed, 2 wrong arguments, 3 no tool or it failed, 4 output not understood.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from inventory.discovery.agent import MOST_FOLDERS, write_report
from inventory.discovery.base import FoundFolder, FoundNode
from inventory.files import FolderError, measure_folder
from inventory.vendors import vendors
from inventory.vendors.base import MAXIMUM_OUTPUT_CHARACTERS, Vendor, VendorError

PROBE_TIMEOUT_SECONDS = 30.0
FOLDER_SECONDS = 3600.0
"""Time for one folder; 1 TB at 300 MB/s is about that."""

Run = Callable[[Sequence[str]], str]


class ProbeError(Exception):
    """The tool is not there, did not end in time or failed."""


def probe(
    vendor: Vendor,
    *,
    hostname: str,
    now: datetime,
    run: Run,
    folders: Sequence[FoundFolder] = (),
) -> dict[str, Any]:
    """Report of one node. Raises ProbeError or VendorError."""
    # A vendor without a command refuses by itself, and says what to do instead.
    output = run(vendor.probe_command) if vendor.probe_command else ""
    found = FoundNode(
        hostname=hostname,
        vendor=vendor.slug,
        source="agent",
        seen_at=now,
        accelerators=tuple(vendor.parse(output)),
        tool=" ".join(vendor.probe_command),
        folders=tuple(folders),
    )
    return write_report(found)


def count_folder(path: str, *, most_seconds: float = FOLDER_SECONDS) -> FoundFolder:
    """Size and checksum of a folder; an `error` where it cannot be counted."""
    try:
        found = measure_folder(Path(path), most_seconds=most_seconds)
    except FolderError as error:
        return FoundFolder(path=path, error=str(error)[:500])
    return FoundFolder(
        path=path,
        size_bytes=found.size_bytes,
        files=found.files,
        sha256=found.sha256,
        seconds=round(found.seconds, 3),
    )


def run_command(command: Sequence[str]) -> str:
    """Output of a command, at most 4 MiB, within 30 s. Raises ProbeError."""
    program = shutil.which(command[0])
    if program is None:
        raise ProbeError(f"{command[0]} is not installed, or not in PATH.")
    try:
        done = subprocess.run(
            [program, *command[1:]],
            capture_output=True, timeout=PROBE_TIMEOUT_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise ProbeError(f"{command[0]} did not end within {PROBE_TIMEOUT_SECONDS:g} s.") from error
    except OSError as error:
        raise ProbeError(f"{command[0]} could not be started: {error}.") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()[:500]
        raise ProbeError(f"{command[0]} ended with code {done.returncode}: {said}")
    return done.stdout[: MAXIMUM_OUTPUT_CHARACTERS + 1].decode("utf-8", "replace")


def installed_vendor() -> Vendor:
    """The only vendor whose tool is installed. Raises ProbeError if there is none, or several."""
    readable = [vendor for vendor in vendors().values() if vendor.probe_command]
    found = [vendor for vendor in readable if shutil.which(vendor.probe_command[0])]
    if len(found) != 1:
        tools = ", ".join(vendor.probe_command[0] for vendor in found or readable)
        state = "Several tools are installed" if found else "None of the tools is installed"
        raise ProbeError(f"{state}: {tools}. Name the vendor with --vendor.")
    return found[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report; a sentence to standard error if there is none."""
    parser = argparse.ArgumentParser(prog="python -m inventory.agent", description=__doc__)
    parser.add_argument("--vendor", choices=sorted(vendors()))
    parser.add_argument("--hostname", default=socket.gethostname())
    parser.add_argument("--folder", action="append", default=[], help="absolute; may be repeated")
    parser.add_argument("--folder-seconds", type=float, default=FOLDER_SECONDS)
    chosen = parser.parse_args(arguments)
    if len(chosen.folder) > MOST_FOLDERS or not all(map(os.path.isabs, chosen.folder)):
        parser.error(f"--folder takes absolute paths, at most {MOST_FOLDERS}.")
    try:
        vendor = vendors()[chosen.vendor] if chosen.vendor else installed_vendor()
        folders = [
            count_folder(path, most_seconds=chosen.folder_seconds)
            for path in dict.fromkeys(chosen.folder)
        ]
        report = probe(
            vendor, hostname=chosen.hostname, now=datetime.now(UTC), run=run_command,
            folders=folders,
        )  # fmt: skip
    except ProbeError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    except VendorError as error:
        sys.stderr.write(f"{error}\n")
        return 4
    sys.stdout.write(json.dumps(report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
