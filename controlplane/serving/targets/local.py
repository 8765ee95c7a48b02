"""Engines of this machine, through the engine host's loopback address."""

from collections.abc import Sequence
from typing import Any

import httpx
from django.conf import settings

from controlplane.serving import outward
from controlplane.serving.targets.base import (
    Capabilities,
    SeenEngine,
    SeenFiles,
    Target,
    TargetRefusedError,
    TargetUnavailableError,
    WantedEngine,
    WantedFiles,
)

TIMEOUT = httpx.Timeout(10.0, connect=2.0)


class Local:
    """Drives the engine host named in settings."""

    slug = "local"

    def apply(self, engine: WantedEngine, *, fencing_token: int) -> None:
        """PUT the engine; the host answers at once and starts it by itself."""
        body = {
            "spec_hash": engine.spec_hash,
            "generation": engine.generation,
            "fencing_token": fencing_token,
            "argv": list(engine.argv),
            "env": dict(engine.env),
        }
        self._ask("PUT", f"/engines/{engine.name}", json=body)

    def observe(self, engines: Sequence[WantedEngine]) -> dict[str, SeenEngine]:
        """One request for all engines of the host."""
        rows = self._ask("GET", "/engines").json()["engines"]
        seen = {row["name"]: _seen(row) for row in rows}
        return {
            engine.name: seen.get(engine.name, SeenEngine(name=engine.name, state="absent"))
            for engine in engines
        }

    def delete(self, engine: WantedEngine, *, fencing_token: int) -> None:
        """End the engine; the host answers at once."""
        try:
            self._ask("DELETE", f"/engines/{engine.name}?fencing_token={fencing_token}")
        except KeyError:
            return

    def logs(self, engine: WantedEngine, *, size: int) -> str:
        """Tail of what the engine printed."""
        try:
            return self._ask("GET", f"/engines/{engine.name}/logs?bytes={size}").text
        except KeyError:
            return ""

    def prefetch(self, files: Sequence[WantedFiles]) -> dict[str, SeenFiles]:
        """The engine host counts the folder where it is; one answer holds for every node."""
        seen = {}
        for wanted in files:
            row = self._ask("PUT", "/folders", json={"path": wanted.folder}).json()
            seen[wanted.node] = SeenFiles(
                sight=row["sight"],
                size_bytes=row["size_bytes"],
                sha256=row["sha256"],
                read_bytes_per_second=row["read_bytes_per_second"],
                detail=row["detail"],
            )
        return seen

    def capabilities(self) -> Capabilities:
        """Everything that engines on this machine need; files have to be here already."""
        return Capabilities(
            starts_engines=True,
            sentence="Engines run as processes of this machine.",
            checks=frozenset({"node-path"}),
        )

    def _ask(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        try:
            with outward.client(TIMEOUT) as client:
                answer = client.request(
                    method,
                    f"{settings.ENGINE_HOST_URL}{path}",
                    headers={"Authorization": f"Bearer {settings.ENGINE_HOST_TOKEN}"},
                    **arguments,
                )
        except httpx.HTTPError as error:
            raise TargetUnavailableError(
                f"The engine host at {settings.ENGINE_HOST_URL} did not answer: {error}."
            ) from error
        if answer.status_code == httpx.codes.NOT_FOUND:
            raise KeyError(path)
        if answer.is_error:
            raise _refusal(answer)
        return answer


def _refusal(answer: httpx.Response) -> Exception:
    try:
        body = answer.json()
    except ValueError:
        body = {}
    detail = body.get("detail") or f"status {answer.status_code}"
    if answer.is_server_error:
        return TargetUnavailableError(f"The engine host failed: {detail}")
    return TargetRefusedError(
        f"The engine host refused: {detail}", fenced=body.get("code") == "fenced"
    )


def _seen(row: dict[str, Any]) -> SeenEngine:
    ended = row["exit"] or {}
    return SeenEngine(
        name=row["name"],
        state=row["state"],
        spec_hash=row["spec_hash"],
        asked_spec_hash=row["wanted_spec_hash"],
        generation=row["generation"],
        pid=row["pid"],
        url=f"http://127.0.0.1:{row['port']}" if row["port"] else None,
        instance=row["instance"],
        starts=row["starts"],
        exit_code=ended.get("code"),
        exited_at=ended.get("at"),
        failure=row["failure"],
    )


TARGET: Target = Local()
