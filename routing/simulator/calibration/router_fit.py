"""How much slower a published router makes first tokens: seconds per open request and endpoint.

Behind the published routers the time to the first token grows with the number of open requests,
in pools whose engines are far from full and whose Service shows nothing of the kind: the router
relays every stream and takes turns. Its makers say that its work is the product of requests and
endpoints. Simulated without a router, a stage lacks that time; divided by both it is about the same
from stage to stage. The median is the coefficient. Rows that judge are not used.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from routing.simulator.calibration.fit import SEED, must_be_fittable
from routing.simulator.published.running import scenario_of
from routing.simulator.published.tables import Row, Table, members
from routing.simulator.requests import Course
from routing.simulator.simulation import Simulation

LEAST_OPEN = 50.0
"""With fewer open requests on average the noise of TTFT is larger than what is looked for."""


class RouterSample(msgspec.Struct, frozen=True, kw_only=True):
    """Of one stage."""

    result: str
    rate_qps: float
    endpoints: int
    open_at_arrival: float
    """Mean over the stage's requests."""
    published_ttft_s: float
    engine_ttft_s: float
    """Simulated without a router."""

    @property
    def seconds(self) -> float:
        """Per open request and endpoint, never below 0."""
        missing = self.published_ttft_s - self.engine_ttft_s
        return max(0.0, missing / self.open_at_arrival / self.endpoints)


def router_samples(
    tables: Sequence[Table], *, rates: Mapping[str, tuple[float, ...]] | None = None
) -> list[RouterSample]:
    """Of every stage with enough open requests. Raises CalibrationError for `judge` tables."""
    found: list[RouterSample] = []
    for used in tables:
        must_be_fittable(used)
        kept = (rates or {}).get(used.id)
        run = Simulation(scenario_of(used, rates=kept), seed=SEED)
        run.run()
        stages = run.scenario.workload.stages
        rows = {row.rate_qps: row for row in used.rows[used.warm_up_stages :]}
        for number, stage in enumerate(stages):
            if stage.is_warm_up or stage.rate_qps is None:
                continue
            courses = [course for course in run.courses if course.stage == number]
            sample = _sample(used, rows[stage.rate_qps], courses)
            if sample is not None:
                found.append(sample)
    return found


def median_seconds(samples: Iterable[RouterSample]) -> float:
    """The coefficient. Raises ValueError without samples."""
    found = [sample.seconds for sample in samples]
    if not found:
        raise ValueError("No stage has enough open requests to tell a router's time from noise.")
    return float(np.median(found))


def open_at_arrival(courses: Sequence[Course]) -> float:
    """Mean number of other requests that were open when one was sent; all must have ended."""
    sent = np.array([course.sent_at for course in courses])
    ended = np.sort([course.ended_at or np.inf for course in courses])
    before = np.searchsorted(np.sort(sent), sent, side="left")
    over = np.searchsorted(ended, sent, side="right")
    return float((before - over).mean())


def _sample(used: Table, row: Row, courses: Sequence[Course]) -> RouterSample | None:
    times = [course.ttft for course in courses if course.ttft is not None]
    many = open_at_arrival(courses)
    if row.ttft_mean_s is None or many < LEAST_OPEN or not times:
        return None
    return RouterSample(
        result=used.id,
        rate_qps=row.rate_qps,
        endpoints=sum(member.count for member in members(used.fleet)),
        open_at_arrival=many,
        published_ttft_s=row.ttft_mean_s,
        engine_ttft_s=float(np.mean(times)),
    )
