"""Engines that somebody else runs: registered, probed, routed, never started or ended."""

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx

from controlplane.serving import outward
from controlplane.serving.targets.base import (
    Capabilities,
    SeenEngine,
    SeenFiles,
    Target,
    WantedEngine,
    WantedFiles,
)

TIMEOUT = httpx.Timeout(3.0, connect=1.0)
AT_ONCE = 8
MAX_PAGE_BYTES = 4 * 1024 * 1024


class Static:
    """Looks at addresses and changes nothing there."""

    slug = "static"

    def apply(self, engine: WantedEngine, *, fencing_token: int) -> None:
        """Nothing: the engine is not ours to start."""

    def observe(self, engines: Sequence[WantedEngine]) -> dict[str, SeenEngine]:
        """Ask each address for its health, at most AT_ONCE at a time."""
        if not engines:
            return {}
        with outward.client(TIMEOUT) as client, ThreadPoolExecutor(AT_ONCE) as pool:
            seen = pool.map(lambda engine: _look(client, engine), engines)
            return {engine.name: engine for engine in seen}

    def delete(self, engine: WantedEngine, *, fencing_token: int) -> None:
        """Nothing: the engine is not ours to end."""

    def logs(self, engine: WantedEngine, *, size: int) -> str:
        """A sentence, because its output is elsewhere."""
        return "This engine is run by somebody else; its output is kept there."

    def prefetch(self, files: Sequence[WantedFiles]) -> dict[str, SeenFiles]:
        """Nothing: whoever runs the engines has their files, too."""
        return {}

    def capabilities(self) -> Capabilities:
        """Says that roles are changed by whoever runs the engine."""
        return Capabilities(
            starts_engines=False,
            sentence="the engine is run by somebody else, who must start it in the role.",
        )


def _look(client: httpx.Client, engine: WantedEngine) -> SeenEngine:
    try:
        health = client.get(f"{engine.url}/health")
        start = _process_start(client, engine.url)
    except httpx.HTTPError as error:
        return SeenEngine(name=engine.name, state="unknown", failure=f"{engine.url}: {error}"[:300])
    if health.is_error:
        failure = f"{engine.url}/health answered {health.status_code}."
        return SeenEngine(name=engine.name, state="starting", failure=failure)
    digest = hashlib.sha256(f"{engine.url} {start}".encode()).hexdigest()[:16]
    return SeenEngine(
        name=engine.name,
        state="running",
        # Its settings are not ours to know: it counts as what is wanted, and the probe decides.
        spec_hash=engine.spec_hash,
        asked_spec_hash=engine.spec_hash,
        generation=engine.generation,
        url=engine.url,
        instance=digest,
        starts=1,
    )


def _process_start(client: httpx.Client, url: str) -> str:
    """Start time of the process as its metrics page says, "" if it does not."""
    page = client.get(f"{url}/metrics")
    if page.is_error or len(page.content) > MAX_PAGE_BYTES:
        return ""
    for line in page.text.splitlines():
        if line.startswith("process_start_time_seconds"):
            return line.rpartition(" ")[2]
    return ""


TARGET: Target = Static()
