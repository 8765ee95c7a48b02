"""The `/metrics` page and the load report of a simulated engine as SGLang writes them.

From SGLang's sources and documentation, not compared with a running server: the names that routers
read, no histograms.
"""

from typing import Any

from routing.testbed.metrics_page import number
from routing.testbed.scheduler import EngineModel


class SglangPage:
    """Writes both from the state of the engine."""

    def __init__(self, model: EngineModel, *, model_name: str, started_at: float) -> None:
        self._model = model
        self._started = started_at
        name = model_name.replace("\\", "\\\\").replace('"', '\\"')
        self._labels = f'engine_type="unified",model_name="{name}",pp_rank="0",tp_rank="0"'
        self._name = name

    def render(self) -> bytes:
        """The page as it is sent."""
        model, stats = self._model, self._model.stats
        limits = model.limits
        gauges = {
            "num_running_reqs": model.running,
            "num_queue_reqs": len(model.waiting),
            "num_decode_transfer_queue_reqs": len(model.pulling),
            "token_usage": model.pool.used_share,
            "max_total_num_tokens": limits.blocks * limits.block_size,
        }
        counters = {
            "prompt_tokens_total": stats.prompt,
            "generation_tokens_total": stats.generation,
            "num_requests_total": sum(stats.finished.values()),
        }
        lines = [
            "# HELP process_start_time_seconds Start time of the process since unix epoch.\n"
            "# TYPE process_start_time_seconds gauge\n"
            f"process_start_time_seconds {number(self._started)}\n"
        ]
        lines += [self._lines(name, "gauge", value, self._labels) for name, value in gauges.items()]
        plain = f'model_name="{self._name}"'
        lines += [self._lines(name, "counter", value, plain) for name, value in counters.items()]
        cached = f'cache_source="device",{plain}'
        lines.append(self._lines("cached_tokens_total", "counter", stats.prefix_hits, cached))
        config = f'{plain},num_pages="{limits.blocks}",page_size="{limits.block_size}"'
        lines.append(self._lines("cache_config_info", "gauge", 1, config))
        return "".join(lines).encode()

    def loads(self) -> dict[str, Any]:
        """The answer of `/v1/loads?include=core`."""
        model = self._model
        total = model.limits.blocks * model.limits.block_size
        waiting = sum(len(sequence.tokens) for sequence in model.waiting)
        used = round(model.pool.used_share * total)
        load = {
            "dp_rank": 0,
            "num_running_reqs": model.running,
            "num_waiting_reqs": len(model.waiting),
            "num_waiting_uncached_tokens": waiting,
            "num_used_tokens": used,
            "num_total_tokens": used + waiting,
            "max_total_num_tokens": total,
            "token_usage": model.pool.used_share,
        }
        return {"loads": [load]}

    def _lines(self, name: str, kind: str, value: float, labels: str) -> str:
        full = f"sglang:{name}"
        return (
            f"# HELP {full} {name.replace('_', ' ')}.\n# TYPE {full} {kind}\n"
            f"{full}{{{labels}}} {number(value)}\n"
        )
