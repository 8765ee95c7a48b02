"""A line every few seconds: what routers and engines say at the moment."""

import time
from collections.abc import Callable

from controlplane.serving.models import Pool, Router
from deploy.demo import policies

EVERY_SECONDS = 5.0


class LiveTable:
    """Prints one row per interval, from the rows that the workers keep up to date."""

    def __init__(self, pool: Pool, *, say: Callable[[str], None]) -> None:
        self._pool = pool
        self._say = say
        self._next = time.monotonic() + EVERY_SECONDS

    def tick(self) -> None:
        """Print a row if one is due."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY_SECONDS
        self._say("  ".join([self._engines(), *map(_router, Router.objects.order_by("name"))]))

    def _engines(self) -> str:
        return f"  engines ready {policies.ready_endpoints(self._pool):>2}"


def _router(router: Router) -> str:
    requests = router.observed.get("requests", {})
    total, failed = requests.get("total"), requests.get("failed")
    if total is None:
        return f"{router.name}: no data"
    return f"{router.name}: {total:>5} requests, {failed} failed"
