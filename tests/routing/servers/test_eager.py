"""Coroutines that are started at once."""

import asyncio

import pytest

from routing.servers import eager


async def test_what_does_not_wait_has_ended_and_needed_no_task() -> None:
    seen: list[int] = []

    async def quick() -> None:
        seen.append(1)

    assert eager.run(quick()) is None
    assert seen == [1]


@pytest.mark.parametrize("is_done_before", [False, True])
async def test_the_rest_goes_on_in_a_task(is_done_before: bool) -> None:
    loop, seen = asyncio.get_running_loop(), []
    first, second = loop.create_future(), loop.create_future()

    async def slow() -> None:
        seen.append("begun")
        seen.append(await first)
        seen.append(await second)

    task = eager.run(slow())
    assert task is not None
    assert seen == ["begun"]
    if not is_done_before:
        await asyncio.sleep(0)
    first.set_result("one")
    second.set_result("two")
    await task

    assert seen == ["begun", "one", "two"]


async def test_an_error_before_and_behind_the_wait_comes_out() -> None:
    future = asyncio.get_running_loop().create_future()

    async def fails(*, later: bool) -> None:
        if later:
            await future
        raise ValueError(str(later))

    with pytest.raises(ValueError, match="False"):
        eager.run(fails(later=False))
    task = eager.run(fails(later=True))
    assert task is not None
    future.set_result(None)

    with pytest.raises(ValueError, match="True"):
        await task


@pytest.mark.parametrize("steps", [0, 1, 2])
async def test_a_cancelled_wait_is_cancelled_inside_however_early(steps: int) -> None:
    future, seen = asyncio.get_running_loop().create_future(), []

    async def waits() -> None:
        try:
            await future
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    task = eager.run(waits())
    assert task is not None
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]
