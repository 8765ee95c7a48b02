"""Brings files of a model to a folder, counts them and prints what was found; needs no Django.

    python -m inventory.prefetch --folder /models
    python -m inventory.prefetch --folder /models --source s3://models/granite \\
        --endpoint https://s3.example.internal

The last line of the output is JSON: {"sight": "there" or "failed", "size_bytes", "sha256",
"read_bytes_per_second", "detail"}. Keys of the store come from AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY. Exit codes: 0 counted, 1 failed, 2 wrong arguments.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from inventory.files import FolderError, measure_folder
from inventory.objectstore import Store, StoreError, fetch_folder, keys_from

LONGEST_SECONDS = 7200.0


def bring(folder: Path, *, source: str, endpoint: str, most_seconds: float) -> dict[str, Any]:
    """Copy if there is a source, then count. Raises StoreError or FolderError."""
    if source:
        parts = urlsplit(source)
        store = Store(endpoint, parts.netloc, keys_from(os.environ))
        try:
            fetch_folder(store, parts.path, folder)
        finally:
            store.close()
    found = measure_folder(folder, most_seconds=most_seconds)
    return {
        "sight": "there",
        "size_bytes": found.size_bytes,
        "sha256": found.sha256,
        "read_bytes_per_second": found.read_bytes_per_second,
        "detail": "",
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the result as the last line."""
    parser = argparse.ArgumentParser(prog="python -m inventory.prefetch", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--source", default="", help="s3://bucket/prefix; without it, only count")
    parser.add_argument("--endpoint", default="")
    parser.add_argument("--most-seconds", type=float, default=LONGEST_SECONDS)
    chosen = parser.parse_args(arguments)
    if not chosen.folder.is_absolute() or bool(chosen.source) != bool(chosen.endpoint):
        parser.error("--folder is absolute, and --source and --endpoint come together.")
    try:
        said = bring(
            chosen.folder, source=chosen.source, endpoint=chosen.endpoint,
            most_seconds=chosen.most_seconds,
        )  # fmt: skip
        code = 0
    except (StoreError, FolderError) as error:
        said = {
            "sight": "failed", "size_bytes": None, "sha256": "", "read_bytes_per_second": None,
            "detail": str(error)[:500],
        }  # fmt: skip
        code = 1
    sys.stdout.write(json.dumps(said) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
