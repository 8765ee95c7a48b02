"""REST of routing: stored decisions, shadow policies, pairs, and questions that change nothing."""

from controlplane.decisions.api.questions import (
    ExplainViewSet,
    ReplayViewSet,
    TestViewSet,
)
from controlplane.decisions.api.reads import (
    DecisionViewSet,
    PairViewSet,
    RouterReadingViewSet,
    ShadowViewSet,
)

__all__ = [
    "DecisionViewSet",
    "ExplainViewSet",
    "PairViewSet",
    "ReplayViewSet",
    "RouterReadingViewSet",
    "ShadowViewSet",
    "TestViewSet",
]
