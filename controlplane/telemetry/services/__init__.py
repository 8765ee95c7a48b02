"""What changes rows of telemetry: targets, scrapes, roll-ups, alerts."""

from controlplane.telemetry.services.alerts import detect_alerts
from controlplane.telemetry.services.rollup import delete_old_samples, recompute_hour
from controlplane.telemetry.services.scrape import ScrapeCount, scrape_engine, scrape_engines
from controlplane.telemetry.services.targets import EngineTarget, end_engine, register_engine

__all__ = [
    "EngineTarget",
    "ScrapeCount",
    "delete_old_samples",
    "detect_alerts",
    "end_engine",
    "recompute_hour",
    "register_engine",
    "scrape_engine",
    "scrape_engines",
]
