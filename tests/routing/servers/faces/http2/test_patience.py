"""How many frames without messages are taken."""

import pytest

from routing.servers.faces.http2.frames import ConnectionBrokenError
from routing.servers.faces.http2.patience import MOST, PER_MESSAGE, PER_SECOND, Patience
from tests.routing.servers.faces.clock import Clock


def test_it_ends_and_time_gives_some_back() -> None:
    clock = Clock()
    patience = Patience(clock)
    patience.spend(MOST)
    with pytest.raises(ConnectionBrokenError):
        patience.spend()
    clock.now = 2.0
    patience.spend(2 * PER_SECOND - 2)
    with pytest.raises(ConnectionBrokenError):
        patience.spend(3)


def test_messages_earn_some_and_nobody_saves_more_than_the_most() -> None:
    patience = Patience(Clock())
    patience.earn(100)
    patience.spend(MOST)
    patience.earn(1)
    patience.spend(PER_MESSAGE)
    with pytest.raises(ConnectionBrokenError):
        patience.spend()


def test_a_long_silence_saves_no_more_than_the_most() -> None:
    clock = Clock()
    patience = Patience(clock)
    clock.now = 1e6
    patience.spend(MOST)
    patience.spend(MOST)
    with pytest.raises(ConnectionBrokenError):
        patience.spend(MOST)
