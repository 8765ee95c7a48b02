"""A scenario of the demo site, run by the worker: which accelerators should do what, and why.

The load is stated, as somebody would who plans for a busier day than the demo's; the fleet and its
roles are those of the site at that moment.
"""

import time
from collections.abc import Callable

from controlplane.operations.models import Operation
from controlplane.planning import services
from controlplane.planning.models import Advice, Scenario, ScenarioRun
from controlplane.planning.telling import sentences
from controlplane.serving.models import Pool
from controlplane.tenancy.models import User

NAME = "A busier day"
NOTE = "50 requests/s with 50 shared beginnings on the fleet as it was; stated, not measured."
TRAFFIC = {
    "rate_qps": 50.0, "prompt_tokens": 4000, "output_tokens": 300, "shared_tokens": 2000,
    "groups": 50,
}  # fmt: skip
TIMEOUT_SECONDS = 120.0
POLL_SECONDS = 0.5


def run_scenario(pool: Pool, *, actor: User) -> ScenarioRun:
    """Start a run of the demo's scenario, which is made anew from the fleet as it is."""
    for old in Scenario.objects.filter(name=NAME, retired_at__isnull=True):
        services.retire_scenario(scenario_id=old.pk, actor=actor)
    question = services.FleetQuestion(pool_id=pool.pk, traffic=TRAFFIC)
    scenario = services.create_from_fleet(
        name=NAME, note=NOTE, question=question, actor=actor, simulated=True
    )
    return services.run_scenario(scenario_id=scenario.pk, actor=actor)


def tell(run: ScenarioRun, *, say: Callable[[str], None]) -> str:
    """Wait for the end and say the advice with its model error; "" or what went wrong."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not (run := ScenarioRun.objects.select_related("operation").get(pk=run.pk)).has_ended:
        if time.monotonic() > deadline:
            return f"the scenario “{NAME}” has not ended after {TIMEOUT_SECONDS:.0f} s"
        time.sleep(POLL_SECONDS)
    if run.state != Operation.State.SUCCEEDED or run.error_band is None:
        return f"the scenario “{NAME}” is {run.state}: {run.operation.error}"
    for advice in Advice.objects.filter(run=run):
        say(f"Planner, pool {advice.name}: {advice.get_verdict_display()}.")
        for sentence in sentences(advice.content["reasons"], "en"):
            say(f"  {sentence}")
    band = run.error_band
    say(
        f"  All of it is simulated; model error {100 * band['throughput']:.0f} % of throughput, "
        f"{100 * band['tpot']:.0f} % of TPOT."
    )
    return ""
