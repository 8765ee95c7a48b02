"""What reads and asks routers about their decisions."""

from controlplane.decisions.services.asking import (
    Explained,
    RouteQuestion,
    Tested,
    explain_route,
    explain_row,
    replay_decision,
    send_test,
)
from controlplane.decisions.services.ingest import pull_decisions, take_in
from controlplane.decisions.services.retention import delete_old_decisions

__all__ = [
    "Explained",
    "RouteQuestion",
    "Tested",
    "delete_old_decisions",
    "explain_route",
    "explain_row",
    "pull_decisions",
    "replay_decision",
    "send_test",
    "take_in",
]
