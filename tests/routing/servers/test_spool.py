"""The usage spool: segments, acknowledgement, bounds, what a crash leaves."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.core.usage import UsageEvent, UsageSegment, events_checksum
from routing.servers.spool import MAX_CLOSING, AcknowledgeError, UsageSpool


def make_event(name: str = "r") -> UsageEvent:
    return UsageEvent(
        sequence=0,
        request_id=name,
        router="r1",
        pool="p",
        document_version=1,
        policy="consort",
        tenant="t",
        project="j",
        key_id="k",
        model="m",
        endpoint="e",
        instance="i",
        node="n",
        role="both",
        prefill_endpoint=None,
        received_at=1.0,
        ended_at=2.0,
        outcome="ok",
        status=200,
        attempt=1,
        delivered=True,
        stream=True,
        prompt_tokens=1,
        cached_tokens=None,
        completion_tokens=1,
        token_source="engine",
        ttft_seconds=None,
        tpot_seconds=None,
    )


def open_spool(folder: Path, **more: int) -> UsageSpool:
    return UsageSpool(folder, router="r1", **{"max_bytes": 10**7, "segment_events": 4} | more)


def delivered(spool: UsageSpool, after: int = 0) -> list[UsageSegment]:
    return [
        msgspec.json.decode(raw, type=UsageSegment)
        for raw in spool.segments_after(after, limit=1000)
    ]


async def closed_through(spool: UsageSpool, sequence: int) -> None:
    """Wait until the spool's thread has stored everything up to a number."""
    async with asyncio.timeout(5):
        while spool.state().closed_through < sequence:
            await asyncio.sleep(0.001)


def kill(spool: UsageSpool) -> None:
    """End a spool's thread and timer as the end of its process would."""
    spool._thread.shutdown(wait=True)
    if spool._timer:
        spool._timer.cancel()


def sequences(spool: UsageSpool, after: int = 0) -> list[int]:
    return [event.sequence for segment in delivered(spool, after) for event in segment.events]


async def test_segments_are_numbered_without_a_gap_and_carry_their_checksum(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    for number in range(9):
        spool.append(make_event(str(number)))
        spool.write()
    spool.close()

    segments = delivered(spool)

    assert sequences(spool) == list(range(1, 10))
    assert [(one.first_sequence, one.last_sequence) for one in segments] == [(1, 4), (5, 8), (9, 9)]
    assert all(one.sha256 == events_checksum(one.events) for one in segments)
    assert [event.request_id for event in segments[0].events] == ["0", "1", "2", "3"]


async def test_a_segment_closes_by_itself_after_its_time(tmp_path: Path) -> None:
    spool = UsageSpool(tmp_path, router="r1", max_bytes=10**7, segment_seconds=0.05)
    spool.append(make_event())

    async with asyncio.timeout(5):
        while not spool.segments_after(0, limit=1):
            await asyncio.sleep(0.01)

    assert spool.state().closed_through == 1
    spool.close()


async def test_the_watermark_waits_for_what_is_not_in_a_closed_segment(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    empty = spool.state().complete_until
    spool.append(make_event())
    unwritten = spool.state().complete_until
    spool.write()
    open_segment = spool.state().complete_until
    spool.close()

    assert empty > 1e9
    assert unwritten == open_segment == 2.0
    assert spool.state().complete_until > 1e9


async def test_acknowledged_segments_are_deleted_and_numbers_go_on(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    for _ in range(8):
        spool.append(make_event())
        spool.write()
    await closed_through(spool, 8)
    spool.acknowledge(8)
    spool.close()

    again = open_spool(tmp_path)
    again.append(make_event())
    again.close()

    # The newest acknowledged file stays, because it knows the last number.
    assert [path.name for path in sorted(tmp_path.glob("*"))] == [
        "0000000000000005-0000000000000008.json",
        "0000000000000009-0000000000000009.json",
    ]
    assert sequences(again, after=8) == [9]


async def test_a_segment_is_kept_until_all_of_it_is_acknowledged(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    for _ in range(8):
        spool.append(make_event())
        spool.write()

    await closed_through(spool, 8)
    deleted = [spool.acknowledge(3), spool.acknowledge(7), spool.acknowledge(7)]
    with pytest.raises(AcknowledgeError, match="closed segments end at 8"):
        spool.acknowledge(9)
    spool.close()

    assert deleted == [0, 1, 0]
    assert sequences(spool) == [5, 6, 7, 8]


async def test_over_the_bound_the_oldest_stay_and_the_drop_is_counted(tmp_path: Path) -> None:
    spool = open_spool(tmp_path, max_bytes=3000, segment_events=1)
    for _ in range(40):
        spool.append(make_event())
        spool.write()
        await closed_through(spool, spool.state().last_sequence)
    kept = sequences(spool)
    dropped = spool.dropped_events
    spool.acknowledge(kept[-1])
    spool.append(make_event())
    spool.close()

    assert kept == list(range(1, len(kept) + 1))
    assert dropped == 40 - len(kept) > 0
    assert sequences(spool) == [len(kept) + 1]


async def test_a_segment_that_cannot_be_closed_keeps_its_numbers(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    in_the_way = tmp_path / "0000000000000001.closing"
    in_the_way.mkdir()
    for _ in range(6):
        spool.append(make_event())
        spool.write()
    stuck = spool.state()
    in_the_way.rmdir()
    spool.append(make_event())
    spool.close()

    assert (stuck.last_sequence, stuck.closed_through) == (6, 0)
    assert sequences(spool) == list(range(1, 8))


async def test_a_disk_that_takes_no_segments_bounds_what_waits_and_loses_no_number(
    tmp_path: Path,
) -> None:
    spool = open_spool(tmp_path, segment_events=1)
    in_the_way = tmp_path / "0000000000000001-0000000000000001.json"
    in_the_way.mkdir()
    for _ in range(MAX_CLOSING + 5):
        spool.append(make_event())
        spool.write()
    dropped = spool.dropped_events
    spool.close()
    in_the_way.rmdir()

    again = open_spool(tmp_path, segment_events=1)

    assert dropped == 5
    assert sequences(again) == list(range(1, MAX_CLOSING + 1))
    again.close()


async def test_one_delivery_is_bounded_in_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = open_spool(tmp_path)
    for _ in range(12):
        spool.append(make_event())
        spool.write()
    spool.close()
    monkeypatch.setattr("routing.servers.spool.PAGE_BYTES", 1)

    assert [one.last_sequence for one in delivered(spool)] == [4]
    assert [one.last_sequence for one in delivered(spool, after=4)] == [8]


async def test_what_a_crash_left_is_cut_into_segments_of_the_usual_size(tmp_path: Path) -> None:
    spool = open_spool(tmp_path, segment_events=100)
    for _ in range(10):
        spool.append(make_event())
        spool.write()
    kill(spool)

    again = open_spool(tmp_path)

    assert [len(one.events) for one in delivered(again)] == [4, 4, 2]
    again.close()


@pytest.mark.parametrize("torn", [0, 1, 20, 300])
async def test_after_a_crash_whole_events_are_delivered_and_no_number_is_used_twice(
    tmp_path: Path, torn: int
) -> None:
    spool = open_spool(tmp_path)
    for _ in range(6):
        spool.append(make_event())
        spool.write()
    kill(spool)
    # Nothing is closed in order, and the last line may be half on disk.
    open_file = tmp_path / "open.jsonl"
    open_file.write_bytes(open_file.read_bytes()[: len(open_file.read_bytes()) - torn])

    again = open_spool(tmp_path)
    before = sequences(again)
    again.append(make_event("later"))
    again.close()

    assert before == list(range(1, 7 if torn <= 1 else 6))
    assert sequences(again) == [*before, len(before) + 1]


@pytest.mark.parametrize("name", ["open.jsonl", "0000000000000001.closing"])
async def test_a_crash_between_closing_and_emptying_delivers_nothing_twice(
    tmp_path: Path, name: str
) -> None:
    spool = open_spool(tmp_path)
    for _ in range(3):
        spool.append(make_event())
        spool.write()
    left = (tmp_path / "open.jsonl").read_bytes()
    spool.close()
    (tmp_path / name).write_bytes(left)
    (tmp_path / "0000000000000004-0000000000000004.json.partial").write_bytes(b"{half")

    again = open_spool(tmp_path)

    assert sequences(again) == [1, 2, 3]
    again.close()


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.sampled_from(["append", "write", "crash", "close", "acknowledge"]),
        min_size=1,
        max_size=40,
    )
)
def test_in_any_order_of_work_and_crashes_numbers_are_gapless_and_unique(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    story = SpoolStory(tmp_path_factory.mktemp("spool"))

    asyncio.run(story.run(steps))

    assert sorted(story.seen) == list(range(1, len(story.seen) + 1))


class SpoolStory:
    """A spool through work and crashes; `seen` is what was ever delivered, by number."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: dict[int, str] = {}
        self.appended = 0

    async def run(self, steps: list[str]) -> None:
        self.spool = open_spool(self.folder)
        for step in steps:
            getattr(self, step)()
        self.close()
        self.collect()

    def append(self) -> None:
        self.appended += 1
        self.spool.append(make_event(str(self.appended)))

    def write(self) -> None:
        self.spool.write()

    def acknowledge(self) -> None:
        self.collect()
        self.spool.acknowledge(self.spool.state().closed_through)

    def close(self) -> None:
        self.spool.close()
        self.spool = open_spool(self.folder)

    def crash(self) -> None:
        """The process is gone, and with it what it had not written."""
        kill(self.spool)
        self.spool = open_spool(self.folder)

    def collect(self) -> None:
        for segment in delivered(self.spool):
            for event in segment.events:
                assert self.seen.setdefault(event.sequence, event.request_id) == event.request_id
