"""Stretches of the testbed as a router lived them: recorded, decided again, simulated."""
