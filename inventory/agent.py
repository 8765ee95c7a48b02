"""Runs a vendor's probe command on a node and prints the report as JSON; needs no Django.

    python -m inventory.agent                 the vendor whose tool is installed
    python -m inventory.agent --vendor amd    this vendor

Exit codes: 0 report printed, 2 wrong arguments, 3 no tool or it failed, 4 output not understood.
"""

import argparse
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from inventory.discovery.agent import write_report
from inventory.discovery.base import FoundNode
from inventory.vendors import vendors
from inventory.vendors.base import MAXIMUM_OUTPUT_CHARACTERS, Vendor, VendorError

PROBE_TIMEOUT_SECONDS = 30.0

Run = Callable[[Sequence[str]], str]


class ProbeError(Exception):
    """The tool is not there, did not end in time or failed."""


def probe(vendor: Vendor, *, hostname: str, now: datetime, run: Run) -> dict[str, Any]:
    """Report of one node. Raises ProbeError or VendorError."""
    found = FoundNode(
        hostname=hostname,
        vendor=vendor.slug,
        source="agent",
        seen_at=now,
        accelerators=tuple(vendor.parse(run(vendor.probe_command))),
        tool=" ".join(vendor.probe_command),
    )
    return write_report(found)


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
    found = [vendor for vendor in vendors().values() if shutil.which(vendor.probe_command[0])]
    if len(found) != 1:
        tools = ", ".join(vendor.probe_command[0] for vendor in found or vendors().values())
        state = "Several tools are installed" if found else "None of the tools is installed"
        raise ProbeError(f"{state}: {tools}. Name the vendor with --vendor.")
    return found[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report; a sentence to standard error if there is none."""
    parser = argparse.ArgumentParser(prog="python -m inventory.agent", description=__doc__)
    parser.add_argument("--vendor", choices=sorted(vendors()))
    parser.add_argument("--hostname", default=socket.gethostname())
    chosen = parser.parse_args(arguments)
    try:
        vendor = vendors()[chosen.vendor] if chosen.vendor else installed_vendor()
        report = probe(vendor, hostname=chosen.hostname, now=datetime.now(UTC), run=run_command)
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
