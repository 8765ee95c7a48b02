"""The right to act for a pool."""

import pytest

from controlplane.serving.services import holding
from tests.controlplane.serving.factories import make_pool

pytestmark = pytest.mark.django_db


def test_one_holds_a_pool_until_it_is_released_and_tokens_only_grow() -> None:
    pool = make_pool()
    first = holding.take(pool)
    assert first is not None

    refused = holding.take(pool)
    holding.release(first)
    second = holding.take(pool)

    assert refused is None
    assert second is not None
    assert second.token > first.token


def test_who_lost_the_pool_finds_out_before_the_next_act() -> None:
    pool = make_pool()
    first = holding.take(pool)
    assert first is not None
    holding.release(first)
    holding.take(pool)

    with pytest.raises(holding.HoldLostError, match="serving"):
        first.renew()
