"""What a race shows goes through the cache and may vanish at any time."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.utils import timezone

from controlplane.planning import board
from routing.simulator.live.duel import Duel

pytestmark = pytest.mark.usefixtures("clean_cache")


def test_a_snapshot_comes_back_as_it_was() -> None:
    race, duel = uuid4(), Duel(rate_qps=2, seed=1, fleet="nxt-4xh100nvl")
    duel.advance(0.5)
    snapshot = board.Snapshot(written_at=timezone.now(), pace=2.5, view=duel.view())

    board.publish(race, snapshot)

    assert board.snapshot_of(race) == snapshot
    assert board.snapshot_of(uuid4()) is None


def test_what_vanished_is_unknown() -> None:
    race = uuid4()
    board.watch(race)
    watched = board.watched_at(race)

    cache.clear()

    assert watched is not None
    assert timezone.now() - watched < timedelta(minutes=1)
    assert board.watched_at(race) is None


def test_figures_of_another_version_are_none() -> None:
    race = uuid4()
    cache.set(f"live-race:{race}:figures", b'{"pace": 1}')

    assert board.snapshot_of(race) is None
