"""Policies against each other: the same arrivals, the same fleets, one table and its judges."""
