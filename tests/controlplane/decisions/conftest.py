"""A real router with scripted engines, in a thread of its own, known to the control plane."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from controlplane.serving.models import Router
from tests.controlplane.serving.factories import make_pool
from tests.routing.servers.scripted import ADMIN_TOKEN, MODEL, Stage


class LiveRouter:
    """Runs coroutines of the stage in the router's own loop."""

    def __init__(self, folder: Path) -> None:
        self.loop = asyncio.new_event_loop()
        # A daemon, so that a test whose router cannot start does not keep pytest from ending.
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.stage = Stage(folder)
        self.run(self.stage.start_router())
        self.run(self.stage.engine("a"))
        self.run(self.stage.engine("b"))
        self.run(
            self.stage.load(
                policy={"name": "consort"},
                recording={
                    "sample_rate": 1.0, "shadow_policies": ["round-robin"], "shadow_rate": 1.0,
                },
            )
        )  # fmt: skip

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of a coroutine."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout=20)

    def stop(self) -> None:
        """Everything ends with the test."""
        self.run(self.stage.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.fixture
def live(tmp_path: Path, db: None) -> Iterator[LiveRouter]:
    """The router, its row and the pool `main`."""
    live = LiveRouter(tmp_path / "router")
    token = tmp_path / "token"
    token.write_text(ADMIN_TOKEN)
    token.chmod(0o600)
    ports = live.stage.router
    Router.objects.create(
        name="r1",
        admin_url=f"http://127.0.0.1:{ports.admin_port}",
        public_url=f"http://127.0.0.1:{ports.port}",
        token_reference=f"file:{token}",
        heard_at=timezone.now(),
        documents={"main": {"version": 1, "hash": "x"}},
    )
    pool = make_pool(slug="main")
    pool.model.slug = MODEL
    pool.model.save(update_fields=["slug"])
    yield live
    live.stop()
