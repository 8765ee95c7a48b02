"""What would happen if: scenarios, runs of the planner, advice, and the savings calculator."""
