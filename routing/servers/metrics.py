"""What the router says about itself in Prometheus form."""

from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_TTFT = (0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4)
_TPOT = (0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.2, 0.4, 0.8)
_DECISION = (50e-6, 100e-6, 200e-6, 400e-6, 800e-6, 1.6e-3, 3.2e-3, 6.4e-3, 25e-3)


class RouterMetrics:
    """All series of one router process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "consort_requests",
            "Answers to clients of the inference API.",
            ["pool", "outcome", "status"],
            registry=registry,
        )
        self.decisions = Counter(
            "consort_decisions",
            "Choices of an endpoint; reason is 'chosen' or the code of the refusal.",
            ["pool", "policy", "reason"],
            registry=registry,
        )
        self.decision_seconds = Histogram(
            "consort_decision_seconds",
            "Time of one choice.",
            ["pool", "policy"],
            buckets=_DECISION,
            registry=registry,
        )
        self.ttft_seconds = Histogram(
            "consort_ttft_seconds",
            "From receipt of a streaming request to its first token.",
            ["pool", "policy"],
            buckets=_TTFT,
            registry=registry,
        )
        self.tpot_seconds = Histogram(
            "consort_tpot_seconds",
            "Mean time per output token after the first, per streaming request.",
            ["pool", "policy"],
            buckets=_TPOT,
            registry=registry,
        )
        self.e2e_seconds = Histogram(
            "consort_e2e_seconds",
            "From receipt of a request to its last byte.",
            ["pool", "policy"],
            buckets=_TTFT,
            registry=registry,
        )
        self.tokens = Counter(
            "consort_tokens",
            "Tokens of answers; kind is prompt, cached (a part of prompt) or completion.",
            ["pool", "kind"],
            registry=registry,
        )
        self.attempt_failures = Counter(
            "consort_attempt_failures",
            "Attempts that failed at an endpoint, by class of failure.",
            ["pool", "endpoint", "kind"],
            registry=registry,
        )
        self.scrapes = Counter(
            "consort_scrapes", "Readings of engines' metrics pages.", ["result"], registry=registry
        )
        self.documents = Gauge(
            "consort_document_version", "Version in service.", ["pool"], registry=registry
        )
        self.running = Gauge(
            "consort_requests_running", "Requests inside the router.", ["pool"], registry=registry
        )
        self.spool_pending = Gauge(
            "consort_spool_pending_segments", "Closed, not acknowledged.", registry=registry
        )
        self._spool_dropped = Counter(
            "consort_spool_dropped_segments",
            "Segments that found no room in the spool; their usage is lost. Alert on any increase.",
            registry=registry,
        )
        self._dropped_before = 0
        self._bound_children()

    def _bound_children(self) -> None:
        """Finding a labelled series costs microseconds, so those of each request are remembered."""
        self.request = lru_cache(maxsize=512)(self.requests.labels)
        self.decision = lru_cache(maxsize=512)(self.decisions.labels)
        self.decision_time = lru_cache(maxsize=512)(self.decision_seconds.labels)
        self.ttft = lru_cache(maxsize=512)(self.ttft_seconds.labels)
        self.tpot = lru_cache(maxsize=512)(self.tpot_seconds.labels)
        self.e2e = lru_cache(maxsize=512)(self.e2e_seconds.labels)
        self.token = lru_cache(maxsize=512)(self.tokens.labels)

    def dropped_segments(self, total: int) -> None:
        """Take over the spool's own count."""
        self._spool_dropped.inc(total - self._dropped_before)
        self._dropped_before = total

    def page(self) -> bytes:
        """The page of `/metrics`."""
        return generate_latest(self.registry)
