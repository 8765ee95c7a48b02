"""What routers say about traffic."""

import math

import pytest

from controlplane.serving.traffic import (
    added,
    failed_share,
    failures,
    quantile,
    ttft_buckets,
    unfinished,
)

PAGE = """# TYPE consort_ttft_seconds histogram
consort_ttft_seconds_bucket{le="0.1",policy="consort",pool="a"} 5.0
consort_ttft_seconds_bucket{le="1.6",policy="consort",pool="a"} 9.0
consort_ttft_seconds_bucket{le="+Inf",policy="consort",pool="a"} 10.0
consort_ttft_seconds_bucket{le="0.1",policy="random",pool="a"} 1.0
consort_ttft_seconds_bucket{le="0.1",policy="random",pool="b"} 7.0
consort_ttft_seconds_sum{policy="consort",pool="a"} 3.5
"""


def test_buckets_of_one_pool_are_summed_over_policies() -> None:
    assert ttft_buckets(PAGE, "a") == {"0.1": 6.0, "1.6": 9.0, "+Inf": 10.0}


def test_histograms_of_routers_add_up() -> None:
    assert added([{"0.1": 1.0}, {"0.1": 2.0, "+Inf": 5.0}]) == {"0.1": 3.0, "+Inf": 5.0}


@pytest.mark.parametrize(
    ("before", "after", "edges"),
    [
        pytest.param({}, {"0.1": 95.0, "+Inf": 100.0}, (0.0, 0.1), id="first-bucket"),
        pytest.param({}, {"0.1": 50.0, "1.6": 95.0, "+Inf": 100.0}, (0.1, 1.6), id="between"),
        pytest.param({}, {"0.1": 5.0, "+Inf": 100.0}, (0.1, math.inf), id="above-the-last-edge"),
        pytest.param({"0.1": 5.0, "+Inf": 5.0}, {"0.1": 5.0, "+Inf": 5.0}, None, id="no-requests"),
        pytest.param({"0.1": 9.0, "+Inf": 9.0}, {"0.1": 1.0, "+Inf": 2.0}, None, id="reset"),
        pytest.param({}, {}, None, id="no-data"),
    ],
)
def test_p95_lies_between_the_edges_of_a_bucket(
    before: dict[str, float], after: dict[str, float], edges: tuple[float, float] | None
) -> None:
    assert quantile(before, after, 0.95) == edges


def test_running_work_is_counted_on_the_endpoints_asked_for() -> None:
    endpoints = [{"id": "x", "inflight_requests": 2}, {"id": "y", "inflight_requests": 3}]
    state = {"pools": {"a": {"endpoints": endpoints}}}

    assert unfinished(state, "a", ["x"]) == 2
    assert unfinished(state, "b", ["x"]) is None
    assert unfinished({}, "a", ["x"]) is None


def test_failures_are_a_share_of_the_requests_between_two_looks() -> None:
    before = failures([{"requests": {"total": 10, "failed": 1}}, {}])
    after = failures([{"requests": {"total": 30, "failed": 3}}, {"requests": None}])

    assert failed_share(before, after) == (20, 0.1)
    assert failed_share(after, before) == (0, None)
