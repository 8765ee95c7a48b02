"""Tasks cover every case that a band is about, and each names published runs of both sides."""

from routing.simulator.published.tables import table
from routing.simulator.reproduce.tasks import PAIRS, tasks
from routing.simulator.reproduce.verdicts import bands


def test_every_band_has_its_runs() -> None:
    cases = {task.case for task in tasks()}

    assert {band.case for band in bands()} - {"all"} <= cases


def test_a_pair_is_a_service_and_a_router_on_one_load() -> None:
    for service, router in PAIRS.values():
        one, other = table(service, "service"), table(router, "llm-d")
        assert one.workload == other.workload
        assert {one.use, other.use} == {"judge"}


def test_keys_are_unique() -> None:
    keys = [task.key for task in tasks()]

    assert len(keys) == len(set(keys))
