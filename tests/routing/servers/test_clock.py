"""The two clocks."""

import asyncio
from datetime import UTC, datetime

from routing.servers import clock


async def test_durations_come_from_the_loop_and_records_from_the_calendar() -> None:
    before = clock.monotonic()
    await asyncio.sleep(0)

    assert clock.monotonic() >= before
    assert abs(clock.unix_now() - datetime.now(tz=UTC).timestamp()) < 5
    assert clock.precise() <= clock.precise()
