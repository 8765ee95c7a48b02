"""REST of planning."""

from controlplane.planning.api.advice import AdviceViewSet
from controlplane.planning.api.runs import ScenarioRunViewSet
from controlplane.planning.api.savings import SavingsCalculatorViewSet
from controlplane.planning.api.scenarios import ScenarioViewSet

__all__ = ["AdviceViewSet", "SavingsCalculatorViewSet", "ScenarioRunViewSet", "ScenarioViewSet"]
