"""The report of a bounded demo, read from the REST API as anybody could."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

WAIT_SECONDS = 45.0
POLL_SECONDS = 0.5
POLICY_FIELDS = ("ttft_p50_s", "ttft_p90_s", "output_tokens_per_s", "prefix_hit_rate")
LEAST_ENGINES = 20
LEAST_VENDORS = 3
LEAST_HIT_RATIO = 2.0


@dataclass
class Run:
    """What the traffic of this run was."""

    project: str
    started: datetime
    pool: str
    clients: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Reports of the load generator by policy."""
    tokens_before: dict[str, int] = field(default_factory=dict)
    """Tokens of this hour from earlier runs, by `router`, `engines` and `probes`."""

    @property
    def hour(self) -> datetime:
        """Start of the hour in which the run began."""
        return self.started.replace(minute=0, second=0, microsecond=0)


class Api:
    """Reads from the REST API with a token."""

    def __init__(self, url: str, token: str) -> None:
        self._client = httpx.Client(
            base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=20.0
        )

    def get(self, path: str, **parameters: str) -> Any:
        """The answer's JSON. Raises httpx.HTTPError for anything but success."""
        answer = self._client.get(path, params=parameters)
        answer.raise_for_status()
        return answer.json()


def make_report(run: Run, *, url: str, token: str) -> tuple[dict[str, Any], list[str]]:
    """The report, and a sentence for everything that is not as it should be.

    Waits until the usage of all requests was ingested and the engines' counters were scraped.
    """
    api = Api(url, token)
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        report = _read(api, run)
        failures = _failures(report, run)
        if not failures or time.monotonic() > deadline:
            return report, failures
        time.sleep(POLL_SECONDS)


def summary(report: Mapping[str, Any]) -> list[str]:
    """The comparison as lines for a terminal; what is missing says so."""
    titles = ("TTFT p50", "TTFT p90", "hit rate", "output/s", "cost/1M")
    head = f"  {'policy':9} " + " ".join(f"{title:>9}" for title in titles)
    lines = [
        "",
        f"The same requests under both policies, {report['word']}; also on the overview:",
        head,
    ]
    for policy, row in sorted(report["policies"].items()):
        cost = row["cost_per_million_output_tokens"]
        figures = [
            _shown(row["ttft_p50_s"], ".2f", " s"),
            _shown(row["ttft_p90_s"], ".2f", " s"),
            _shown(row["prefix_hit_rate"], ".0%"),
            _shown(row["output_tokens_per_s"], ",.0f"),
            _shown(None if cost is None else float(cost), ".2f", f" {row['currency']}"),
        ]
        lines.append(f"  {policy:9} " + " ".join(f"{figure:>9}" for figure in figures))
    return [*lines, ""]


def write_report(path: Path, report: Mapping[str, Any]) -> None:
    """Write the report as JSON; the folder must exist."""
    path.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")


def _read(api: Api, run: Run) -> dict[str, Any]:
    endpoints = api.get("/endpoints", pool=run.pool, state="ready", page_size="1000")["items"]
    vendors = {node["hostname"]: node["vendor"] for node in api.get("/nodes")["items"]}
    compared = api.get(
        "/policy-comparisons", pool=run.pool, project=run.project, **{"from": _time(run.started)}
    )
    tokens = {
        name: None if value is None else value - run.tokens_before.get(name, 0)
        for name, value in _tokens(api, run).items()
    }
    rows = {row["policy"]: row for row in compared["items"]}
    return {
        "vendors": len({vendors.get(endpoint["node"]) for endpoint in endpoints}),
        "engines": len(endpoints),
        "requests_ok": sum(row["requests_ok"] for row in rows.values()),
        "requests_failed": sum(row["requests_failed"] for row in rows.values()),
        "usage_tokens_router": tokens["router"],
        "usage_tokens_engines": tokens["engines"],
        "probe_tokens": tokens["probes"],
        "policies": {policy: _policy(row) for policy, row in rows.items()},
        "word": compared["word"],
    }


def _tokens(api: Api, run: Run) -> dict[str, int | None]:
    totals = api.get("/reconciliations/totals", pool=run.pool, hour__gte=_time(run.hour))
    return {
        "router": totals["gateway_tokens"],
        "engines": totals["engine_client_tokens"],
        "probes": totals["probe_tokens"],
    }


def _policy(row: Mapping[str, Any]) -> dict[str, Any]:
    cost = row["cost_per_million_output_tokens"]
    figures = {name: row[name] for name in POLICY_FIELDS}
    return {
        **figures,
        "cost_per_million_output_tokens": cost["amount"] if cost else None,
        "currency": cost["currency"] if cost else None,
        "requests_ok": row["requests_ok"],
        "requests_failed": row["requests_failed"],
    }


def _failures(report: Mapping[str, Any], run: Run) -> list[str]:
    found = [f"{name} is null: no data" for name in _nulls(report)]
    if report["vendors"] < LEAST_VENDORS or report["engines"] < LEAST_ENGINES:
        found.append(f"{report['engines']} engines of {report['vendors']} vendors take requests")
    if report["requests_failed"]:
        found.append(f"{report['requests_failed']} requests failed")
    if report["usage_tokens_router"] != report["usage_tokens_engines"]:
        found.append(
            f"routers counted {report['usage_tokens_router']} tokens, "
            f"engines {report['usage_tokens_engines']}"
        )
    for policy in ("random", "consort"):
        found += _policy_failures(policy, report["policies"].get(policy), run)
    return found or _race_failures(report["policies"])


def _policy_failures(policy: str, row: Mapping[str, Any] | None, run: Run) -> list[str]:
    clients = run.clients[policy]
    if clients["failed"]:
        return [f"{policy}: clients saw failures: {clients['failures_by_reason']}"]
    if row is None or row["requests_ok"] != clients["ok"]:
        counted = row["requests_ok"] if row else "no data"
        return [f"{policy}: clients got {clients['ok']} answers, usage has {counted}"]
    return []


def _race_failures(policies: Mapping[str, Mapping[str, Any]]) -> list[str]:
    random, consort = policies["random"], policies["consort"]
    found = []
    if consort["prefix_hit_rate"] < LEAST_HIT_RATIO * random["prefix_hit_rate"]:
        found.append("consort's hit rate is not twice that of random choice")
    if consort["ttft_p50_s"] >= random["ttft_p50_s"]:
        found.append("consort's TTFT p50 is not below that of random choice")
    return found


def _nulls(value: object, path: str = "") -> list[str]:
    if value is None:
        return [path]
    if isinstance(value, Mapping):
        return [null for key in value for null in _nulls(value[key], f"{path}.{key}".strip("."))]
    return []


def _shown(value: float | None, form: str, unit: str = "") -> str:
    return "no data" if value is None else f"{value:{form}}{unit}"


def _time(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
