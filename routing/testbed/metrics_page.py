"""The `/metrics` page of a simulated engine: names, labels and types as vLLM 0.32 writes them."""

from collections.abc import Callable, Iterable

from routing.testbed.scheduler import EngineModel
from routing.testbed.stats import Histogram, Stats

Series = tuple[str, float]
"""Labels beside engine and model_name, already in text, and the value."""

_COUNTERS: tuple[tuple[str, str, Callable[[Stats], Iterable[Series]]], ...] = (
    ("prefix_cache_queries", "Prefix cache queries in tokens.", lambda s: [("", s.prefix_queries)]),
    ("prefix_cache_hits", "Prefix cache hits in tokens.", lambda s: [("", s.prefix_hits)]),
    (
        "external_prefix_cache_queries",
        "Tokens asked of another engine's cache.",
        lambda s: [("", s.external_queries)],
    ),
    (
        "external_prefix_cache_hits",
        "Tokens got from another engine's cache.",
        lambda s: [("", s.external_hits)],
    ),
    ("num_preemptions", "Preempted sequences.", lambda s: [("", s.preemptions)]),
    ("prompt_tokens", "Prompt tokens processed.", lambda s: [("", s.prompt)]),
    (
        "prompt_tokens_by_source",
        "Prompt tokens by source.",
        lambda s: [
            (
                ',source="local_compute"',
                s.prompt - s.local_cache_hit - s.external_transfer,
            ),
            (',source="local_cache_hit"', s.local_cache_hit),
            (',source="external_kv_transfer"', s.external_transfer),
        ],
    ),
    (
        "prompt_tokens_cached",
        "Prompt tokens that were not computed here.",
        lambda s: [("", s.local_cache_hit + s.external_transfer)],
    ),
    (
        "prompt_tokens_cached_by_source",
        "Cached prompt tokens by tier.",
        lambda s: [
            (',source="device"', s.prefix_hits),
            (',source="host"', 0),
            (',source="p2p"', s.external_hits),
            (',source="disk"', 0),
            (',source="external_unspecified"', 0),
        ],
    ),
    ("generation_tokens", "Tokens generated.", lambda s: [("", s.generation)]),
)

_HISTOGRAMS: tuple[tuple[str, str], ...] = (
    ("request_prompt_tokens", "request_prompt"),
    ("request_generation_tokens", "request_generation"),
    ("iteration_tokens_total", "step_tokens"),
    ("request_max_num_generation_tokens", "max_generation"),
    ("request_params_n", "params_n"),
    ("request_params_max_tokens", "params_max_tokens"),
    ("time_to_first_token_seconds", "first_token"),
    ("inter_token_latency_seconds", "inter_token"),
    ("request_time_per_output_token_seconds", "per_output_token"),
    ("e2e_request_latency_seconds", "e2e"),
    ("request_queue_time_seconds", "queue"),
    ("request_inference_time_seconds", "inference"),
    ("request_prefill_time_seconds", "prefill"),
    ("request_decode_time_seconds", "decode"),
    ("request_num_preemptions", "request_preemptions"),
    ("request_prefill_kv_computed_tokens", "prefill_computed"),
    ("nixl_xfer_time_seconds", "transfer_seconds"),
    ("nixl_post_time_seconds", "transfer_post"),
    ("nixl_bytes_transferred", "transfer_bytes"),
    ("nixl_num_descriptors", "transfer_descriptors"),
)

_NIXL_COUNTERS: tuple[tuple[str, Callable[[Stats], int]], ...] = (
    ("nixl_num_failed_transfers", lambda s: s.failed_transfers),
    ("nixl_num_failed_notifications", lambda s: 0),
    ("nixl_num_kv_expired_reqs", lambda s: s.expired_holds),
    ("nixl_num_notifications_after_expiry", lambda s: s.late_notifications),
)


def number(value: float) -> str:
    """A number as the Prometheus client for Python writes it: 1e6 and above in exponent form."""
    text = repr(float(value))
    dot = text.find(".")
    if value <= 0 or dot <= 6 or "e" in text:
        return text
    mantissa = f"{text[0]}.{text[1:dot]}{text[dot + 1 :]}".rstrip("0.")
    return f"{mantissa}e+{dot - 1:02d}"


class MetricsPage:
    """Writes the page. Histograms that did not change since the last page are not written again."""

    def __init__(self, model: EngineModel, *, model_name: str, started_at: float) -> None:
        self._model = model
        name = model_name.replace("\\", "\\\\").replace('"', '\\"')
        self._engine = f'engine="0",model_name="{name}"'
        self._name = name
        self._created = number(started_at)
        self._started = started_at
        self._written: dict[str, tuple[int, str]] = {}
        self._info = self._cache_config()

    def render(self) -> bytes:
        """The page as it is sent."""
        model, stats = self._model, self._model.stats
        deferred = len(model.pulling)
        capacity = len(model.waiting)
        parts = [self._process()]
        parts += [
            self._gauge("num_requests_running", [("", model.running)]),
            self._gauge("num_requests_waiting", [("", capacity + deferred)]),
            self._gauge(
                "num_requests_waiting_by_reason",
                [(',reason="capacity"', capacity), (',reason="deferred"', deferred)],
            ),
            self._gauge(
                "engine_sleep_state",
                [
                    (',sleep_state="awake"', 1),
                    (',sleep_state="weights_offloaded"', 0),
                    (',sleep_state="discard_all"', 0),
                ],
            ),
            self._gauge("kv_cache_usage_perc", [("", model.pool.used_share)]),
        ]
        parts += [self._counter(name, text, read(stats)) for name, text, read in _COUNTERS]
        parts.append(self._successes(stats))
        parts.append(self._rejections())
        parts += [self._histogram(name, getattr(stats, field)) for name, field in _HISTOGRAMS]
        parts += [
            self._counter(n, n.replace("_", " "), [("", r(stats))]) for n, r in _NIXL_COUNTERS
        ]
        parts.append(self._info)
        return "".join(parts).encode()

    def _process(self) -> str:
        return (
            "# HELP process_start_time_seconds Start time of the process since unix epoch.\n"
            "# TYPE process_start_time_seconds gauge\n"
            f"process_start_time_seconds {self._created}\n"
        )

    def _gauge(self, name: str, series: Iterable[Series]) -> str:
        lines = [f"# HELP vllm:{name} {name.replace('_', ' ')}.\n# TYPE vllm:{name} gauge\n"]
        lines += [
            f"vllm:{name}{{{self._engine}{more}}} {number(value)}\n" for more, value in series
        ]
        return "".join(lines)

    def _counter(self, name: str, text: str, series: Iterable[Series]) -> str:
        series = list(series)
        lines = [f"# HELP vllm:{name}_total {text}\n# TYPE vllm:{name}_total counter\n"]
        lines += [
            f"vllm:{name}_total{{{self._engine}{more}}} {number(value)}\n" for more, value in series
        ]
        lines.append(f"# HELP vllm:{name}_created {text}\n# TYPE vllm:{name}_created gauge\n")
        lines += [
            f"vllm:{name}_created{{{self._engine}{more}}} {self._created}\n" for more, _ in series
        ]
        return "".join(lines)

    def _successes(self, stats: Stats) -> str:
        # vLLM sorts labels, so finished_reason stands between engine and model_name.
        series = [
            (f'{{engine="0",finished_reason="{reason}",model_name="{self._name}"}}', count)
            for reason, count in stats.finished.items()
        ]
        return self._plain_counter("request_success", series)

    def _rejections(self) -> str:
        series = [
            (f'{{model_name="{self._name}",reason="{reason}"}}', 0)
            for reason in ("max_num_queued_reqs", "max_num_queued_tokens")
        ]
        return self._plain_counter("admission_rejections", series)

    def _plain_counter(self, name: str, series: list[tuple[str, int]]) -> str:
        text = name.replace("_", " ")
        lines = [f"# HELP vllm:{name}_total {text}\n# TYPE vllm:{name}_total counter\n"]
        lines += [f"vllm:{name}_total{labels} {number(value)}\n" for labels, value in series]
        lines.append(f"# HELP vllm:{name}_created {text}\n# TYPE vllm:{name}_created gauge\n")
        lines += [f"vllm:{name}_created{labels} {self._created}\n" for labels, _ in series]
        return "".join(lines)

    def _histogram(self, name: str, histogram: Histogram) -> str:
        count, text = self._written.get(name, (-1, ""))
        if count == histogram.count:
            return text
        full = f"vllm:{name}"
        lines = [f"# HELP {full} {name.replace('_', ' ')}\n# TYPE {full} histogram\n"]
        running = 0
        for bound, observed in zip(histogram.bounds, histogram.counts, strict=False):
            running += observed
            lines.append(f"{full}_bucket{{{self._bucket(number(bound))}}} {number(running)}\n")
        lines.append(f"{full}_bucket{{{self._bucket('+Inf')}}} {number(histogram.count)}\n")
        lines.append(f"{full}_count{{{self._engine}}} {number(histogram.count)}\n")
        lines.append(f"{full}_sum{{{self._engine}}} {number(histogram.total)}\n")
        lines.append(f"# HELP {full}_created {name}\n# TYPE {full}_created gauge\n")
        lines.append(f"{full}_created{{{self._engine}}} {self._created}\n")
        text = "".join(lines)
        self._written[name] = (histogram.count, text)
        return text

    def _bucket(self, bound: str) -> str:
        return f'engine="0",le="{bound}",model_name="{self._name}"'

    def _cache_config(self) -> str:
        limits, profile = self._model.limits, self._model.profile
        size, blocks = str(limits.block_size), limits.blocks
        tokens = blocks * limits.block_size
        labels = {
            "block_size": size,
            "cache_dtype": "auto",
            "effective_attention_block_size": size,
            "enable_prefix_caching": "True",
            "engine": "0",
            "gpu_memory_utilization": "0.85",
            "kv_cache_memory_bytes": str(tokens * profile.kv_bytes_per_token),
            "kv_cache_size_tokens": str(tokens),
            "num_cpu_blocks": "None",
            "num_gpu_blocks": str(blocks),
            "num_gpu_blocks_override": "None",
            "prefix_caching_hash_algo": "xxhash",
            "sliding_window": "None",
        }
        text = ",".join(f'{key}="{value}"' for key, value in labels.items())
        return (
            "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n"
            "# TYPE vllm:cache_config_info gauge\n"
            f"vllm:cache_config_info{{{text}}} 1.0\n"
        )
