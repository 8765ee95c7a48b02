"""One holder at a time."""

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.operations import leases
from controlplane.operations.models import Lease
from tests.racing import at_the_same_time

pytestmark = pytest.mark.django_db
SHORT = 0.01
LONG = 60.0


def _lapse(lease: Lease) -> None:
    """Wait until the database's clock has passed the end of the lease."""
    deadline = time.monotonic() + 5
    while leases.renew(lease, seconds=SHORT) and time.monotonic() < deadline:
        time.sleep(2 * SHORT)


def test_a_free_resource_is_taken() -> None:
    lease = leases.acquire("pool:a", holder="one", seconds=LONG)

    assert lease is not None
    assert (lease.token, lease.holder) == (1, "one")


def test_a_held_resource_is_refused_to_others() -> None:
    leases.acquire("pool:a", holder="one", seconds=LONG)

    assert leases.acquire("pool:a", holder="two", seconds=LONG) is None
    assert leases.acquire("pool:b", holder="two", seconds=LONG) is not None


def test_after_its_end_the_next_holder_gets_a_larger_token() -> None:
    first = leases.acquire("pool:a", holder="one", seconds=SHORT)
    _lapse(first)

    second = leases.acquire("pool:a", holder="two", seconds=LONG)

    assert second.token == first.token + 1
    assert not leases.renew(first, seconds=LONG)
    assert not leases.release(first)


def test_a_released_resource_is_free_at_once_and_its_token_stays() -> None:
    first = leases.acquire("pool:a", holder="one", seconds=LONG)

    assert leases.release(first)

    second = leases.acquire("pool:a", holder="two", seconds=LONG)
    assert second.token == first.token + 1


def test_a_holder_that_asks_again_fences_off_its_earlier_self() -> None:
    first = leases.acquire("pool:a", holder="one", seconds=LONG)

    second = leases.acquire("pool:a", holder="one", seconds=LONG)

    assert second.token == first.token + 1
    assert not leases.renew(first, seconds=LONG)
    assert leases.renew(second, seconds=LONG)


def test_renewal_moves_the_end() -> None:
    lease = leases.acquire("pool:a", holder="one", seconds=LONG)
    end = lease.expires_at

    assert leases.renew(lease, seconds=2 * LONG)

    assert lease.expires_at > end


@pytest.mark.django_db(transaction=True)
def test_of_eight_askers_one_gets_it() -> None:
    outcomes = []

    def ask() -> None:
        holder = f"holder-{time.monotonic_ns()}"
        outcomes.append(leases.acquire("pool:a", holder=holder, seconds=LONG))

    at_the_same_time(8, ask)

    assert sum(lease is not None for lease in outcomes) == 1


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["acquire", "release"])), max_size=12)
)
def test_the_token_only_grows(steps: list[tuple[str, str]]) -> None:
    Lease.objects.all().delete()
    held: Lease | None = None
    largest = 0
    for holder, verb in steps:
        if verb == "release" and held is not None:
            leases.release(held)
            continue
        lease = leases.acquire("r", holder=holder, seconds=LONG)
        if lease is not None:
            assert lease.token > largest
            largest, held = lease.token, lease
