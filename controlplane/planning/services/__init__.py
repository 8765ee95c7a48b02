"""Everything that can be done to scenarios, runs, advice and live races."""

from controlplane.planning.services.plans import make_change_plan
from controlplane.planning.services.races import (
    change_rate,
    end_stranded_races,
    start_race,
    stop_race,
    work_on_race,
)
from controlplane.planning.services.runs import cancel_run, run_scenario, work_on_run
from controlplane.planning.services.scenarios import (
    FleetQuestion,
    change_scenario,
    create_from_fleet,
    create_scenario,
    retire_scenario,
)
from controlplane.planning.services.standing import advise_standing, ask_standing, forget_standing

__all__ = [
    "FleetQuestion",
    "advise_standing",
    "ask_standing",
    "cancel_run",
    "change_rate",
    "change_scenario",
    "create_from_fleet",
    "create_scenario",
    "end_stranded_races",
    "forget_standing",
    "make_change_plan",
    "retire_scenario",
    "run_scenario",
    "start_race",
    "stop_race",
    "work_on_race",
    "work_on_run",
]
