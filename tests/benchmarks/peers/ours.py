"""Starts a Consort router over some engines, as the comparison needs it: model `fake`, key `x`.

python -m tests.benchmarks.peers.ours --port P --folder DIR --workers URL URL …
"""

import argparse
import hashlib
import json
import os
import sys
from pathlib import Path

KEY = "x"
TOKEN = "token-of-the-comparison"


def document(workers: list[str]) -> bytes:
    """A unified pool of these engines under the policy `consort`."""
    endpoints = [
        {
            "id": f"e{number}", "url": url, "instance": "1", "engine": "vllm", "role": "both",
            "vendor": "nvidia", "speed_class": "c", "node": f"n{number}", "site": "s",
            "kv_capacity_tokens": 500_000, "block_size_tokens": 16, "max_sequences": 1024,
            "kv_contract": {"engine": "vllm"},
        }
        for number, url in enumerate(workers)
    ]  # fmt: skip
    speed = {
        "prefill_tokens_per_second": 22_700, "step_seconds": 6.0e-3,
        "step_seconds_per_sequence": 5.0e-5, "step_seconds_per_context_token": 8.2e-8,
        "kv_bytes_per_token": 163_840,
    }  # fmt: skip
    key = {
        "id": "k", "sha256": hashlib.sha256(KEY.encode()).hexdigest(), "tenant": "t",
        "project": "p",
    }  # fmt: skip
    return json.dumps(
        {
            "pool": "peers", "version": 1, "author": "bench",
            "created_at": "2026-01-01T00:00:00Z", "role_mode": "unified",
            "models": [{"name": "fake", "max_model_len": 131_072}],
            "endpoints": endpoints, "speed_classes": {"c": speed}, "keys": [key],
        }
    ).encode()  # fmt: skip


def command(folder: Path, raw: bytes, *, port: str) -> list[str]:
    """Write the state that a router loads at its start; returns how it is started."""
    documents = folder / "state/documents"
    documents.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(b"peers").hexdigest()[:32]
    (documents / f"{name}.json").write_bytes(raw)
    token = folder / "token"
    token.write_text(TOKEN)
    return [
        sys.executable, "-m", "routing.servers", "--name", "peers", "--port", port,
        "--admin-port", "0", "--state-dir", str(folder / "state"),
        "--admin-token-file", str(token), "--log-level", "warning",
    ]  # fmt: skip


def main() -> None:
    """Become that router."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--workers", nargs="+", required=True)
    options = parser.parse_args()
    line = command(options.folder, document(options.workers), port=options.port)
    os.execv(sys.executable, line)


if __name__ == "__main__":
    main()
