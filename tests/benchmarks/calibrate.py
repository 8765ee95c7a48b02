"""The packaged coefficients again, from published runs of pools of one class; `make calibrate`.

    python -m tests.benchmarks.calibrate [--only intel-gaudi3/granite-4.1-8b,router]

Prints what was found beside what is packaged, and writes `var/bench/calibration.json`: factors on
the unfitted profile, coefficients, the runs they came from, errors, date. `profiles.yaml` and
`calibration/routers.yaml` are changed by hand from it.
"""

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from routing.simulator.calibration.coefficients import scaled
from routing.simulator.calibration.fit import Fit, calibrate
from routing.simulator.calibration.router_fit import median_seconds, router_samples
from routing.simulator.calibration.targets import ROUTER_RATES, TARGETS
from routing.simulator.profiles import Profile, load_profile, load_unfitted
from routing.simulator.published.tables import table

OUT = Path("var/bench/calibration.json")
ROUTER = "router"
FIELDS = (
    "prefill_seconds_per_token",
    "step_seconds",
    "step_seconds_of_experts",
    "step_seconds_per_sequence",
    "step_seconds_per_context_token",
    "kv_tokens",
)


def main() -> None:
    """Fit, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join([*TARGETS, ROUTER]))
    wanted = parser.parse_args().only.split(",")
    found: dict[str, Any] = {"date": datetime.now(UTC).date().isoformat()}
    for name in wanted:
        found[name] = _router() if name == ROUTER else _engine(name)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(found, indent=1) + "\n")


def _engine(name: str) -> dict[str, Any]:
    target = TARGETS[name]

    def progress(evaluations: int, loss: float) -> None:
        print(f"\r{name}: {evaluations} evaluations, loss {loss:.4f}", end="", file=sys.stderr)

    fit = calibrate(target, progress=progress)
    print(file=sys.stderr)
    profile = scaled(load_unfitted(target.accelerator, target.model), _factors(fit))
    packaged = load_profile(target.accelerator, target.model)
    print(f"{name}: loss {fit.loss:.4f} on {', '.join(fit.results)}")
    for field in FIELDS:
        print(
            f"  {field:32} {getattr(profile, field):12.5g} packaged {getattr(packaged, field):.5g}"
        )
    return msgspec.to_builtins(fit) | {"coefficients": _values(profile)}


def _factors(fit: Fit) -> dict[Any, float]:
    return dict(fit.factors)


def _values(profile: Profile) -> dict[str, float]:
    return {field: getattr(profile, field) for field in FIELDS}


def _router() -> dict[str, Any]:
    samples = router_samples([table(result) for result in ROUTER_RATES], rates=ROUTER_RATES)
    for sample in samples:
        print(f"  {sample.result} at {sample.rate_qps:g} qps: {1000 * sample.seconds:.3f} ms")
    seconds = median_seconds(samples)
    print(f"router: {1000 * seconds:.3f} ms per open request and endpoint")
    return {
        "seconds_per_open_request_and_endpoint": seconds,
        "samples": [msgspec.to_builtins(sample) for sample in samples],
    }


if __name__ == "__main__":
    main()
