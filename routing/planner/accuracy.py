"""How far simulated figures may be off: printed with every plan."""

import msgspec


class ErrorBand(msgspec.Struct, frozen=True, kw_only=True):
    """How far figures may be off, shares of 0 to 1."""

    throughput: float
    """Limit of the simulator's median relative error."""
    tpot: float
    source: str
    rate_resolution: float | None = None
    """To which the largest rate that a placement keeps is searched where advice depends on it;
    `None` in plans of versions that searched on a grid."""


RATE_RESOLUTION = 0.02
"""Finer would tell nothing: a window of 150 requests, of which nine in ten are good, has a standard
error of 2.4 %."""

MODEL_ERROR = ErrorBand(
    throughput=0.15,
    tpot=0.25,
    source="docs/simulation.md: largest median error over published stages that counts as met",
    rate_resolution=RATE_RESOLUTION,
)
"""The limits that calibration is held to; TTFT at saturation is an order of magnitude only. Nobody
publishes goodput, so that its error is assumed to be that of throughput."""

ENGINE_MODEL = "2026.12.3"
"""Changes when profiles, engine model or search change what a plan says."""
