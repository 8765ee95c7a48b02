"""Small fleets and loads for the planner's tests."""

from typing import Any

from routing.planner.problem import Demand, Group, Problem, Roles, Target, Traffic

MODEL = "granite-4.1-8b"


def group(accelerator: str = "amd-mi325x", **overrides: Any) -> Group:
    values: dict[str, Any] = {
        "name": accelerator, "accelerator": accelerator, "nodes": 1, "accelerators_per_node": 4,
        "price_per_hour": "2", "watts": 700.0,
    }  # fmt: skip
    return Group(**values | overrides)


def traffic(rate_qps: float = 2.0, **overrides: Any) -> Traffic:
    values: dict[str, Any] = {"rate_qps": rate_qps, "prompt_tokens": 1000, "output_tokens": 50}
    return Traffic(**values | overrides)


def demand(rate_qps: float = 2.0, **overrides: Any) -> Demand:
    lengths = overrides.pop("lengths", {})
    values: dict[str, Any] = {"model": MODEL, "traffic": traffic(rate_qps, **lengths)}
    return Demand(**values | overrides)


def problem(*groups: Group, demands: tuple[Demand, ...] = (), **overrides: Any) -> Problem:
    values: dict[str, Any] = {"groups": groups or (group(),), "demands": demands or (demand(),)}
    return Problem(**values | overrides)


__all__ = ["MODEL", "Roles", "Target", "demand", "group", "problem", "traffic"]
