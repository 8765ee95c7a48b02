"""What the planner is given: the fleet in groups, and the load as it was measured."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.decisions.models import Decision
from controlplane.planning import selectors
from controlplane.planning.selectors.fleet import target_of
from controlplane.telemetry.models import Alert
from inventory.models import Accelerator, Node
from routing.planner.problem import Roles
from tests.controlplane.planning.recorded import make_recorded_run
from tests.controlplane.planning.rows import make_events, make_serving_fleet
from tests.controlplane.serving.factories import accelerators_of, make_fleet_node, make_pool
from tests.factories import make_ben, make_olga

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
QUARTER = timedelta(minutes=15)


def test_equal_accelerators_are_one_group_over_nodes() -> None:
    pool, _ = make_serving_fleet(both=2)
    make_fleet_node(accelerators=2)

    facts = selectors.fleet_facts([pool], include_idle=True)

    (group,) = facts.groups
    assert (group.nodes, group.accelerators_per_node) == (2, 2)
    assert facts.roles == {pool.slug: {"amd-mi325x": Roles(both=2)}}
    assert len(facts.members["amd-mi325x"]) == 4


def test_what_is_not_ready_is_not_planned_with() -> None:
    pool, node = make_serving_fleet(both=3)
    broken = accelerators_of(node)[0]
    Accelerator.objects.filter(pk=broken.pk).update(state=Accelerator.State.CORDONED)
    away = make_fleet_node(accelerators=2)
    Node.objects.filter(pk=away.pk).update(state=Node.State.CORDONED)

    facts = selectors.fleet_facts([pool], include_idle=True)

    assert [group.accelerators for group in facts.groups] == [2]
    assert str(broken.pk) not in facts.members["amd-mi325x"]


def test_an_accelerator_that_an_alert_calls_slow_is_a_group_of_its_own() -> None:
    pool, node = make_serving_fleet(both=4)
    slow = accelerators_of(node)[2]
    Alert.objects.create(
        kind=Alert.Kind.SLOWER_THAN_CLASS, fingerprint="x", node=node, accelerator=slow,
        since=NOON, opened_at=NOON, facts={"value": 310.0, "class_median": 930.0},
        source="measured",
    )  # fmt: skip

    facts = selectors.fleet_facts([pool], include_idle=False)

    speeds = {group.accelerators: group.speed for group in facts.groups}
    assert speeds == {3: 1.0, 1: 0.33}


def test_prices_are_those_of_the_setting(settings: Any) -> None:
    pool, _ = make_serving_fleet(both=1)
    settings.ENDPOINT_PRICES = "tests.controlplane.planning.test_selectors.two_dollars"

    facts = selectors.fleet_facts([pool], include_idle=False)

    assert facts.groups[0].price_per_hour == "2.000000"


def two_dollars(accelerators: Any) -> Any:
    return dict.fromkeys(accelerators, 2)


def test_queries_do_not_grow_with_the_fleet(django_assert_max_num_queries: Any) -> None:
    pool, _ = make_serving_fleet(both=2)
    for _number in range(6):
        make_fleet_node("intel-gaudi3", accelerators=8)

    with django_assert_max_num_queries(16):
        selectors.fleet_facts([pool], include_idle=True)


def test_a_pool_without_targets_has_the_planner_s() -> None:
    assert target_of(make_pool()).ttft_seconds == 3.0
    assert target_of(make_pool(slo_ttft_p95_seconds=1.5)).ttft_seconds == 1.5


def test_a_load_is_the_mean_of_what_was_answered() -> None:
    pool = make_pool()
    make_events(pool, 90, until=NOON, seconds=900, input_uncached=300, cache_read=200, output=50)
    make_events(pool, 30, until=NOON, seconds=900, outcome="error", delivered=False)

    load = selectors.measured_load(pool, since=NOON - QUARTER, until=NOON)

    assert load is not None
    assert load.requests == 90
    assert load.traffic.rate_qps == pytest.approx(0.1)
    assert (load.traffic.prompt_tokens, load.traffic.output_tokens) == (500, 50)
    # Nobody sampled a decision, so how many beginnings there are is not known.
    assert (load.traffic.shared_tokens, load.traffic.groups) == (0, 0)


def test_different_beginnings_are_those_of_the_sampled_decisions() -> None:
    pool = make_pool()
    make_events(pool, 60, until=NOON, seconds=900, cache_read=200)
    Decision.objects.bulk_create(
        Decision(
            router="r", router_started_at=0.0, number=number, decision_id=str(number), at=NOON
            - timedelta(minutes=number + 1), pool=pool.slug, document_version=1, policy="consort",
            prefix=f"prefix-{number % 3}", outcome="ok",
        )
        for number in range(9)
    )  # fmt: skip

    load = selectors.measured_load(pool, since=NOON - QUARTER, until=NOON)

    assert load is not None
    assert load.traffic.groups == 3
    assert load.traffic.shared_tokens == 200


def test_a_young_pool_counts_from_its_first_request_and_few_requests_say_nothing() -> None:
    young, quiet = make_pool(), make_pool()
    make_events(young, 120, until=NOON, seconds=120)
    make_events(quiet, 19, until=NOON, seconds=120)

    load = selectors.measured_load(young, since=NOON - QUARTER, until=NOON)

    assert load is not None
    assert load.traffic.rate_qps == pytest.approx(1.0, rel=0.02)
    assert selectors.measured_load(quiet, since=NOON - QUARTER, until=NOON) is None


def test_a_tenant_sees_no_row_of_planning() -> None:
    run = make_recorded_run(make_olga())
    ben = make_ben()

    assert not selectors.scenarios_for_viewer(ben).exists()
    assert not selectors.runs_for_viewer(ben).exists()
    assert not selectors.advice_for_viewer(ben).exists()
    assert run.created_at <= timezone.now()
