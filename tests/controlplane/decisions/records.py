"""Lines of a router's ring, made by the real core on a small disaggregated pool."""

import json
from typing import Any

from controlplane.decisions.sources.router import Page
from controlplane.serving.models import Pool, PoolDocument
from routing.core.document import PoolDocument as Content
from routing.core.document import encode_document
from routing.core.record import record_of
from routing.core.signals import EngineSignals
from routing.pool.router import PoolRouter
from tests.controlplane.serving.factories import make_pool
from tests.routing.pool.builders import endpoint_dict, make_document, make_request, serve

NAMES = ("gpu-kr-01", "gpu-kr-03", "gpu-kr-07", "gpu-kr-11")


def document(**overrides: Any) -> Content:
    """Three endpoints that answer, one that drains."""
    first, second, third, fourth = NAMES
    return make_document(
        endpoint_dict(first, speed_class="slow"),
        endpoint_dict(second),
        endpoint_dict(third),
        endpoint_dict(fourth, state="draining"),
        **({"recording": {"shadow_policies": ["round-robin"], "shadow_rate": 1.0}} | overrides),
    )


class Desk:
    """A router's core with some work behind it, whose decisions become lines."""

    def __init__(self, content: Content | None = None) -> None:
        self.document = content or document()
        self.router = PoolRouter(self.document, seed=3, now=0.0)
        self.number = 0
        self.lines: list[dict[str, Any]] = []
        for turn in range(6):
            serve(self.router, make_request(f"group {turn % 2} " * 2000, id=f"w{turn}"), now=turn)
        for name in NAMES[:3]:
            self.router.observe(name, EngineSignals(running=1, waiting=0, kv_usage=0.2), now=9.0)

    def decide(self, *, outcome: dict[str, Any] | None = None, **request: Any) -> dict[str, Any]:
        """One more recorded decision, and how it ended."""
        text = request.pop("text", "group 1 " * 2000)
        asked = make_request(text, **({"id": f"r{self.number}"} | request))
        decision = self.router.decide(asked, now=10.0, keep="always")
        if decision.destination is not None:
            self.router.begin(asked, decision, now=10.0)
        head = {"attempt": 1, "document_hash": "ab" * 32}
        line = self.add({"recorded_at": 1_790_000_000.0, **head, **record_of(decision)})
        if outcome is not None:
            self.add({"outcome_of": decision.id, "pool": decision.pool, "outcome": outcome})
        return line

    def add(self, line: dict[str, Any]) -> dict[str, Any]:
        """A line with the next number, as it comes through JSON."""
        self.number += 1
        self.lines.append(json.loads(json.dumps({"number": self.number, **line}, allow_nan=False)))
        return self.lines[-1]

    def page(self, *, started_at: float = 100.0, **changes: Any) -> Page:
        """What the router would answer."""
        shadow = {self.document.pool: self.router.shadows.describe()}
        policies = {self.document.pool: self.document.policy.name}
        values = {
            "policies": policies,
            "router": "router-a",
            "decisions": self.lines,
            "last": self.number,
        }
        return Page(**({**values, "started_at": started_at, "shadow": shadow} | changes))


def store_document(content: Content) -> PoolDocument:
    """The row of a pool document, with its pool."""
    row, _made = PoolDocument.objects.update_or_create(
        pool=Pool.objects.filter(slug=content.pool).first() or make_pool(slug=content.pool),
        version=content.version,
        defaults={
            "content": encode_document(content).decode(),
            "sha256": "ab" * 32,
            "body_sha256": "cd" * 32,
        },
    )
    return row
