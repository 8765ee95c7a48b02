"""The driver on a real loop: late steps are made up for, holds expire, leavers never enter."""

import asyncio
import itertools
import time
from collections.abc import Callable

from routing.testbed.driver import EngineDriver
from routing.testbed.scheduler import EngineModel
from routing.testbed.sequence import Sequence, State
from tests.routing.testbed.helpers import make_model, make_sequence


def make_driver(
    model: EngineModel, start_pull: Callable[[Sequence], None] | None = None
) -> EngineDriver:
    """A driver whose transfers never end, unless something else is given."""
    return EngineDriver(model, start_pull=start_pull or (lambda _: None))


def holding(driver: EngineDriver, name: str, seconds: float) -> Callable[[Sequence], None]:
    """A listener that holds the blocks of a finished prefill."""

    def listen(sequence: Sequence) -> None:
        driver.hold(name, sequence, seconds)

    return listen


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, at most ten seconds."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def test_a_busy_machine_does_not_slow_the_engine_down() -> None:
    model = make_model()
    driver = make_driver(model)
    ends: list[float] = []
    sequence = make_sequence(100, output=20, arrived=driver.now)
    sequence.listener = lambda s: ends.append(s.last)
    driver.submit(sequence)
    await until(lambda: sequence.output >= 2)

    time.sleep(0.1)
    await until(lambda: sequence.state is State.FINISHED)
    driver.stop()

    gaps = sorted(later - earlier for earlier, later in itertools.pairwise(ends))
    assert len(ends) == 20
    # One gap may have had to wait for a machine that was busy longer than the driver makes up for.
    assert gaps[-2] < 1.2 * model.profile.decode_seconds(1, 120)


async def test_a_request_that_leaves_before_it_was_read_never_enters() -> None:
    model = make_model()
    driver = make_driver(model)
    left, stays = make_sequence(100), make_sequence(100)
    for sequence in (left, stays):
        driver.submit(sequence)

    driver.abort(left)
    await until(lambda: stays.state is State.FINISHED)
    driver.stop()

    assert left.state is State.WAITING
    assert sum(model.stats.finished.values()) == 1


async def test_a_waiting_request_goes_on_when_a_hold_gives_its_blocks_back() -> None:
    model = make_model(blocks=10)
    driver = make_driver(model)
    first = make_sequence(160, output=1, hold=True)
    first.listener = holding(driver, "r", 30.0)
    second = make_sequence(100, start=5000, output=2)
    driver.submit(first)
    await until(lambda: first.state is State.FINISHED)
    driver.submit(second)
    await until(lambda: len(model.waiting) == 1)

    released = driver.release("r")
    await until(lambda: second.state is State.FINISHED)
    driver.stop()

    assert released


async def test_holds_expire_one_after_the_other() -> None:
    model = make_model()
    driver = make_driver(model)
    for number in range(2):
        sequence = make_sequence(100, start=1000 * number, output=1, hold=True)
        sequence.listener = holding(driver, f"r{number}", 0.03 * (number + 1))
        driver.submit(sequence)

    await until(lambda: model.stats.expired_holds == 2)
    driver.stop()

    assert model.held == {}
    assert model.pool.available == model.pool.total


async def test_a_lost_transfer_ends_the_request_when_told_to_fail() -> None:
    model = make_model()
    driver = make_driver(model)
    sequence = make_sequence(1000)
    sequence.state = State.PULLING
    model.pulling.append(sequence)
    told: list[str | None] = []
    sequence.listener = lambda s: told.append(s.finish_reason)

    driver.pull_finished(sequence, arrived=False, fail=True)
    driver.stop()

    assert told == ["error"]
    assert model.pulling == []
    assert model.stats.failed_transfers == 1
