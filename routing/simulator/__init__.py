"""Fleets in virtual time, routed by the same code as production: no I/O, no clock, no thread."""
