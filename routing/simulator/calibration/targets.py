"""The fits behind the packaged coefficients: which runs, which stages, which coefficients.

What a pool cannot tell is not fitted. All prompts of a pool are of one length, so the part of a
step per sequence stays where it is and the part per context token takes the rest; and only a pool
whose memory is the limit tells how much of it there is (H100-NVL).
"""

from routing.simulator.calibration.coefficients import Coefficient
from routing.simulator.calibration.fit import Target
from routing.simulator.published.tables import table

_DENSE: tuple[Coefficient, ...] = ("mfu", "step_seconds_per_context_token", "step_seconds")

TARGETS = {
    "nvidia-h100-nvl/granite-4.1-8b": Target(
        accelerator="nvidia-h100-nvl",
        model="granite-4.1-8b",
        tables=(table("nxt-h100nvl-granite-k8s"),),
        rates={"nxt-h100nvl-granite-k8s": (3, 10, 20, 30)},
        coefficients=(*_DENSE, "kv_tokens"),
        replicas=2,
    ),
    "amd-mi325x/granite-4.1-8b": Target(
        accelerator="amd-mi325x",
        model="granite-4.1-8b",
        tables=(table("nxt-mi325x-granite-k8s"), table("nxt-mi325x-granite-k8s-rerun")),
        rates={
            "nxt-mi325x-granite-k8s": (3, 10, 20, 50),
            "nxt-mi325x-granite-k8s-rerun": (3, 10, 20, 50),
        },
        coefficients=_DENSE,
        replicas=2,
    ),
    "intel-gaudi3/granite-4.1-8b": Target(
        accelerator="intel-gaudi3",
        model="granite-4.1-8b",
        tables=(table("nxt-gaudi3-granite-k8s"),),
        coefficients=_DENSE,
        replicas=2,
    ),
    "amd-mi325x/sarvam-30b": Target(
        accelerator="amd-mi325x",
        model="sarvam-30b",
        tables=(table("nxt-mi325x-sarvam-k8s"),),
        # Without gaps: each stage goes further into the 3,000 prompts, and finds the rest cached.
        rates={"nxt-mi325x-sarvam-k8s": (5, 25, 50, 75, 100)},
        coefficients=("mfu", "step_seconds"),
        replicas=2,
    ),
    "nvidia-h100-sxm-tp2/qwen3-32b": Target(
        accelerator="nvidia-h100-sxm-tp2",
        model="qwen3-32b",
        tables=(table("guide-rate10"), table("guide-rate60-precise05")),
        coefficients=("step_seconds_per_context_token", "step_seconds"),
    ),
}
"""By accelerator and model, as in `profiles.yaml`."""

ROUTER_RATES = {
    "nxt-mi325x-granite-llmd": (25, 40, 60),
    "nxt-mi325x-granite-llmd-rerun": (25, 40, 50),
    "nxt-gaudi3-granite-llmd": (15, 25, 50),
    "nxt-mi325x-sarvam-llmd": (50, 100, 150),
}
"""Stages that tell how slow the published router was, by result."""
