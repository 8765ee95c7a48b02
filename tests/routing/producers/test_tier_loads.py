"""Load times of slower memory."""

import numpy as np
import pytest

from routing.core.block_masks import HOST, REMOTE
from routing.core.table import EndpointTable, Instance
from routing.producers.tier_loads import TierLoads
from tests.routing.pool.builders import endpoint_dict, make_document

TIERS = [{"medium": "CPU", "seconds_per_token": 1e-5}, {"medium": "DISK"}]
DOCUMENT = make_document(endpoint_dict("a", tiers=TIERS), endpoint_dict("b"))


def make_table() -> EndpointTable:
    instances = [Instance(spec, row, row) for row, spec in enumerate(DOCUMENT.endpoints)]
    return EndpointTable(DOCUMENT, instances, now=0.0)


def planes(slot: int) -> dict[str, int]:
    return [{"CPU": HOST, "DISK": REMOTE}, {}][slot]


def test_stated_times_count_and_others_are_unknown() -> None:
    seconds = TierLoads().seconds_per_token(make_table(), planes)

    np.testing.assert_equal(seconds, [[1e-5, np.nan], [np.nan, np.nan]])


def test_confirmed_hits_teach_the_time() -> None:
    loads, table = TierLoads(), make_table()
    instance = table.instances[0]

    for lease in range(30):
        loads.begin(lease, np.array([0.0, 1000.0]))
        loads.end(lease, instance, seconds=0.05, hit_share=1.0)

    found = loads.seconds_per_token(table, planes)
    assert found[1, 0] == pytest.approx(5e-5)
    assert found[0, 0] == 1e-5


@pytest.mark.parametrize(
    ("slower", "seconds", "share"),
    [
        pytest.param([500.0, 500.0], 0.05, 1.0, id="two-memories"),
        pytest.param([0.0, 100.0], 0.05, 1.0, id="short"),
        pytest.param([0.0, 1000.0], 0.05, 0.5, id="not-confirmed"),
        pytest.param([0.0, 1000.0], None, 1.0, id="no-time"),
    ],
)
def test_what_is_not_clear_teaches_nothing(
    slower: list[float], seconds: float | None, share: float
) -> None:
    loads, table = TierLoads(), make_table()

    loads.begin(1, np.array(slower))
    loads.end(1, table.instances[0], seconds=seconds, hit_share=share)

    assert np.isnan(loads.seconds_per_token(table, planes)[1, 0])
