"""What the router says about itself in Prometheus form."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from routing.core.table import Instance
from routing.pool.caches import Caches
from routing.servers.series import Counts, Spreads

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_TTFT = (0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4)
_TPOT = (0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.2, 0.4, 0.8)
_DECISION = (50e-6, 100e-6, 200e-6, 400e-6, 800e-6, 1.6e-3, 3.2e-3, 6.4e-3, 25e-3)


class RouterMetrics:
    """All series of one router process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.request = Counts(
            "consort_requests",
            "Answers to clients of the inference API.",
            ["pool", "outcome", "status"],
            registry=registry,
        ).of
        self.decision = Counts(
            "consort_decisions",
            "Choices of an endpoint; reason is 'chosen' or the code of the refusal.",
            ["pool", "policy", "reason"],
            registry=registry,
        ).of
        self.decision_time = Spreads(
            "consort_decision_seconds",
            "Time of one choice.",
            ["pool", "policy"],
            bounds=_DECISION,
            registry=registry,
        ).of
        self.ttft = Spreads(
            "consort_ttft_seconds",
            "From receipt of a streaming request to its first token.",
            ["pool", "policy"],
            bounds=_TTFT,
            registry=registry,
        ).of
        self.tpot = Spreads(
            "consort_tpot_seconds",
            "Mean time per output token after the first, per streaming request.",
            ["pool", "policy"],
            bounds=_TPOT,
            registry=registry,
        ).of
        self.e2e = Spreads(
            "consort_e2e_seconds",
            "From receipt of a request to its last byte.",
            ["pool", "policy"],
            bounds=_TTFT,
            registry=registry,
        ).of
        self.token = Counts(
            "consort_tokens",
            "Tokens of answers; kind is prompt, cached (a part of prompt) or completion.",
            ["pool", "kind"],
            registry=registry,
        ).of
        self._attempt_failures = Counts(
            "consort_attempt_failures",
            "Attempts that failed at an endpoint, by class of failure.",
            ["pool", "endpoint", "kind"],
            registry=registry,
        )
        self.attempt_failure = self._attempt_failures.of
        self.ext_proc_wrong_orders = Counter(
            "consort_ext_proc_wrong_orders",
            "Streams of a gateway that broke the order of the endpoint-picker protocol.",
            registry=registry,
        )
        self.observed_requests = Counter(
            "consort_observed_requests",
            "Requests of somebody else's gateway that were looked at, by what became of the look.",
            ["result"],
            registry=registry,
        )
        self.continued_streams = Counter(
            "consort_continued_streams",
            "Streams that broke after their first token and were asked of another endpoint.",
            ["pool"],
            registry=registry,
        )
        self.unfetched_prefills = Counter(
            "consort_unfetched_prefills",
            "Prompts that were computed for another endpoint, which did not fetch them.",
            ["pool"],
            registry=registry,
        )
        self.refusal = Counts(
            "consort_refusals",
            "Requests that were not served, by code and by the rule that decided.",
            ["pool", "code", "rule"],
            registry=registry,
        ).of
        self.queue_wait = Spreads(
            "consort_queue_wait_seconds",
            "Waiting of requests in the router; result is how it ended.",
            ["pool", "priority", "result"],
            bounds=_TTFT,
            registry=registry,
        ).of
        self.queued = Gauge(
            "consort_queue_requests",
            "Requests that wait in the router.",
            ["pool"],
            registry=registry,
        )
        self.queued_bytes = Gauge(
            "consort_queue_bytes", "Bytes of their bodies.", ["pool"], registry=registry
        )
        self.scrapes = Counter(
            "consort_scrapes", "Readings of engines' metrics pages.", ["result"], registry=registry
        )
        self.tokeniser_checks = Counter(
            "consort_tokeniser_checks",
            "Probes whose tokens were compared with an engine's: same, other or unanswered.",
            ["pool", "result"],
            registry=registry,
        )
        self.tokenised = Counter(
            "consort_tokenised_texts",
            "Pieces of prompts that were tokenised in the background: done, failed or no-room.",
            ["pool", "result"],
            registry=registry,
        )
        self.documents = Gauge(
            "consort_document_version", "Version in service.", ["pool"], registry=registry
        )
        self.running = Gauge(
            "consort_requests_running", "Requests inside the router.", ["pool"], registry=registry
        )
        self._shadow_sums = {
            name: Gauge(f"consort_shadow_{name}", text, ["pool", "policy"], registry=registry)
            for name, text in (
                ("asked", "Requests about which a shadow policy was asked, since the start."),
                ("agreed", "Of them those with the same destination."),
                ("priced", "Of them those whose regret is known."),
                ("regret_seconds", "Sum of how much dearer its choices are; may be negative."),
            )
        }
        self._prediction_error = Gauge(
            "consort_prediction_error",
            "Mean absolute relative error of predicted times; phase is ttft or tpot.",
            ["pool", "speed_class", "phase"],
            registry=registry,
        )
        self.spool_pending = Gauge(
            "consort_spool_pending_segments", "Closed, not acknowledged.", registry=registry
        )
        self._spool_dropped = Counter(
            "consort_spool_dropped_segments",
            "Segments that found no room in the spool; their usage is lost. Alert on any increase.",
            registry=registry,
        )
        self._dropped_before = self._restarts_before = 0
        self._of_several(registry)
        self._add_caches(registry)

    def _of_several(self, registry: CollectorRegistry) -> None:
        """What there is with several processes, or several routers."""
        self.gossip = Counter(
            "consort_gossip_packets",
            "Packets between routers: sent, heard, or why one was not taken.",
            ["result"],
            registry=registry,
        )
        self.gossip_seconds = Counter(
            "consort_gossip_seconds",
            "CPU time spent on telling peers and hearing them.",
            registry=registry,
        )
        self.processes = Gauge(
            "consort_processes_serving", "Processes of this router that serve.", registry=registry
        )
        self.processes.set(1)
        self._restarts = Counter(
            "consort_process_restarts",
            "Serving processes that ended and were started again.",
            registry=registry,
        )

    def _add_caches(self, registry: CollectorRegistry) -> None:
        self._hit_rates = Gauge(
            "consort_prefix_hit_rate",
            "Share of prompt tokens that were cached; kind is predicted or real.",
            ["pool", "endpoint", "kind"],
            registry=registry,
        )
        self._event_blocks = Gauge(
            "consort_cache_event_blocks",
            "Blocks that an endpoint holds by its own events.",
            ["pool", "endpoint"],
            registry=registry,
        )
        self._event_trust = Gauge(
            "consort_cache_event_trust",
            "How far blocks known from events are believed, 0 to 1.",
            ["pool", "endpoint"],
            registry=registry,
        )
        self._event_age = Gauge(
            "consort_cache_event_age_seconds",
            "Since the last batch of an endpoint's cache events.",
            ["pool", "endpoint"],
            registry=registry,
        )
        self._event_troubles = Gauge(
            "consort_cache_event_troubles",
            "Times that a stream of cache events was not as it should be, by reason.",
            ["pool", "endpoint", "reason"],
            registry=registry,
        )

    def shadow(self, pool: str, policy: str, sums: Mapping[str, float]) -> None:
        """Take over what the pool's router counted of a shadow policy."""
        for name, gauge in self._shadow_sums.items():
            gauge.labels(pool, policy).set(sums[name])

    def prediction(
        self, pool: str, speed_class: str, errors: Mapping[str, Mapping[str, float | int | None]]
    ) -> None:
        """Take over how far predictions of a class were off; absent before any outcome."""
        for phase, told in errors.items():
            if told["mean_error"] is not None:
                gauge = self._prediction_error.labels(pool, speed_class, phase)
                gauge.set(float(told["mean_error"]))

    def caches(self, pools: Mapping[str, Caches], *, now: float) -> None:
        """Take over what is known of caches; endpoints that are gone leave the page."""
        gauges = (
            self._hit_rates, self._event_blocks, self._event_trust, self._event_age,
            self._event_troubles,
        )  # fmt: skip
        for gauge in gauges:
            gauge.clear()
        known = set()
        for pool, caches in pools.items():
            for instance in caches.table.instances:
                known.add((pool, instance.spec.id))
                self._cache(pool, caches, instance, now=now)
        self._attempt_failures.keep(lambda labels: labels[:2] in known)

    def _cache(self, pool: str, caches: Caches, instance: Instance, *, now: float) -> None:
        name, rates = instance.spec.id, caches.rates(instance)
        if rates is not None:
            self._hit_rates.labels(pool, name, "predicted").set(rates["predicted_rate"])
            self._hit_rates.labels(pool, name, "real").set(rates["real_rate"])
        events = caches.events.describe(instance, now=now)
        if events is None:
            return
        self._event_blocks.labels(pool, name).set(events["blocks"])
        self._event_trust.labels(pool, name).set(events["trust"])
        if events["age_seconds"] is not None:
            self._event_age.labels(pool, name).set(events["age_seconds"])
        for reason, count in events["reasons"].items():
            self._event_troubles.labels(pool, name, reason).set(count)

    def dropped_segments(self, total: int) -> None:
        """Take over the spool's own count."""
        self._spool_dropped.inc(total - self._dropped_before)
        self._dropped_before = total

    def restarts(self, total: int) -> None:
        """Take over the supervisor's own count."""
        self._restarts.inc(total - self._restarts_before)
        self._restarts_before = total

    def page(self) -> bytes:
        """The page of `/metrics`."""
        return generate_latest(self.registry)
