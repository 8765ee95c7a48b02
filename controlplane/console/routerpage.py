"""Which document a router has of each pool, and whether that is the newest."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from controlplane.serving.models import Router


@dataclass(frozen=True, slots=True)
class RouterRow:
    """A router beside one pool's document."""

    name: str
    version: int | None
    in_sync: bool
    heard_at: datetime | None


def documents_of(router: Router, newest: Mapping[str, int]) -> list[tuple[str, int | None, str]]:
    """Pool, version that the router has (None is none), and in_sync or behind."""
    return [
        (pool, version_of(router, pool), _state(version_of(router, pool), wanted))
        for pool, wanted in sorted(newest.items())
    ]


def rows_for(routers: list[Router], *, pool: str, version: int | None) -> list[RouterRow]:
    """Routers in use beside the newest version of one pool's document."""
    return [
        RouterRow(
            name=router.name,
            version=version_of(router, pool),
            in_sync=version is not None and (version_of(router, pool) or 0) >= version,
            heard_at=router.heard_at,
        )
        for router in routers
        if router.enabled
    ]


def version_of(router: Router, pool: str) -> int | None:
    """Version of the pool's document that the router said it has; None if it has none."""
    found = router.documents.get(pool)
    version = found.get("version") if isinstance(found, dict) else None
    return version if isinstance(version, int) else None


def _state(version: int | None, wanted: int) -> str:
    return "in_sync" if (version or 0) >= wanted else "behind"
