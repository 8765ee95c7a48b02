"""A run of the demo answers for its own tokens only."""

from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane.metering import services
from controlplane.metering.models import Reconciliation
from deploy.demo import earlier
from tests.controlplane.finance.rows import make_pool
from tests.controlplane.metering.rows import first_prompt, make_event, make_segment

pytestmark = pytest.mark.django_db


def this_hour() -> datetime:
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


def ingest(*events: Any) -> None:
    services.ingest_segment(make_segment(events))
    services.recompute_stale_hours()


def test_first_prompts_of_routers_are_not_among_what_clients_used_before() -> None:
    hour = this_hour()
    at = hour.timestamp() + 1
    make_pool()
    ingest(make_event(1, received_at=at, ended_at=at), first_prompt(2, received_at=at, ended_at=at))

    assert earlier.router_tokens("granite", hour) == 1050


def test_engines_tokens_are_told_without_probes_and_those_for_themselves() -> None:
    hour = this_hour()
    Reconciliation.objects.create(
        pool="granite",
        hour=hour,
        gateway_tokens=1050,
        engine_tokens=1353,
        probe_tokens=303,
        unattributed_tokens=0,
        source="simulated",
    )

    assert earlier.engine_tokens("granite", hour) == {"engines": 1050, "probes": 303}


def test_before_the_first_run_there_is_nothing() -> None:
    assert earlier.engine_tokens("granite", this_hour()) == {"engines": 0, "probes": 0}
    assert earlier.router_tokens("granite", this_hour()) == 0
