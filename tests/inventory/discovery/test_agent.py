"""The agent's report: written, read back, and refused with the member that is wrong."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.discovery.agent import read_report, write_report
from inventory.discovery.base import DiscoveryError, FoundNode
from inventory.vendors.base import FoundAccelerator

GOOD: dict[str, Any] = {
    "hostname": "gpu-1",
    "vendor": "amd",
    "seen_at": "2026-11-30T09:00:00Z",
    "tool": "rocm-smi",
    "accelerators": [{"slot": 0, "serial": "A", "name": "MI325X", "utilisation": 0.5}],
}


def with_device(**changes: Any) -> dict[str, Any]:
    return GOOD | {"accelerators": [GOOD["accelerators"][0] | changes]}


def test_a_figure_that_is_left_out_is_none() -> None:
    found = read_report(GOOD)

    assert found.seen_at == datetime(2026, 11, 30, 9, tzinfo=UTC)
    assert found.accelerators == (
        FoundAccelerator(slot=0, serial="A", name="MI325X", utilisation=0.5),
    )
    assert found.accelerators[0].power_watts is None


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        pytest.param([], "not an object", id="list"),
        pytest.param(GOOD | {"host": "x"}, "unknown members: host", id="unknown-member"),
        pytest.param(GOOD | {"hostname": " "}, "hostname is missing", id="no-hostname"),
        pytest.param(GOOD | {"vendor": 3}, "vendor is not a text", id="vendor-number"),
        pytest.param(GOOD | {"seen_at": "today"}, "seen_at is not a time", id="no-time"),
        pytest.param(GOOD | {"seen_at": "2026-11-30T09:00:00"}, "no time zone", id="naive"),
        pytest.param(GOOD | {"accelerators": {}}, "not a list", id="no-list"),
        pytest.param(GOOD | {"accelerators": [{}] * 257}, "at most 256", id="too-many"),
        pytest.param(GOOD | {"accelerators": [3]}, r"accelerators\[0\] is not", id="number"),
        pytest.param(with_device(slot=-1), r"\[0\]\.slot", id="slot"),
        pytest.param(with_device(slot=True), r"\[0\]\.slot", id="slot-true"),
        pytest.param(with_device(utilisation=1.5), "between 0 and 1", id="over-one"),
        pytest.param(with_device(power_watts="9"), "not a number", id="text-power"),
        pytest.param(with_device(power_watts=float("nan")), "not a number", id="nan"),
        pytest.param(with_device(health="fine"), "healthy, degraded, failed", id="health"),
        pytest.param(with_device(serial="x" * 129), "at most 128", id="long-serial"),
        pytest.param(with_device(colour="red"), "members of", id="unknown-figure"),
        pytest.param(
            GOOD | {"accelerators": [{"slot": 0}, {"slot": 0}]}, "slot 0 is there twice",
            id="slot-twice",
        ),
        pytest.param(
            GOOD | {"accelerators": [{"slot": 0, "serial": "A"}, {"slot": 1, "serial": "A"}]},
            "serial A is there twice", id="serial-twice",
        ),
    ],
)  # fmt: skip
def test_a_wrong_report_is_refused_with_the_member(report: Any, sentence: str) -> None:
    with pytest.raises(DiscoveryError, match=sentence):
        read_report(report)


devices = st.builds(
    FoundAccelerator,
    slot=st.integers(0, 255),
    serial=st.text("ABCDEF-0123456789", min_size=1, max_size=20),
    name=st.text("MI325X ", max_size=20).map(str.strip),
    memory_total_mib=st.none() | st.integers(0, 2**31 - 1),
    memory_used_mib=st.none() | st.integers(0, 2**31 - 1),
    utilisation=st.none() | st.floats(0, 1),
    power_watts=st.none() | st.floats(0, 1000),
    temperature_celsius=st.none() | st.floats(-20, 120),
    health=st.sampled_from(["healthy", "degraded", "failed"]),
)


@given(
    st.lists(devices, max_size=5, unique_by=(lambda d: d.slot, lambda d: d.serial)),
    st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - hypothesis takes naive bounds
)
def test_a_report_survives_the_journey(found: list[FoundAccelerator], seen_at: datetime) -> None:
    node = FoundNode("gpu-1", "amd", "agent", seen_at, tuple(found), "rocm-smi --json")

    received = read_report(json.loads(json.dumps(write_report(node))))

    assert received == node
    assert received.seen_at.utcoffset() == timedelta(0)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: (
    st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(GOOD)), inner, max_size=5)
)))  # fmt: skip
def test_any_json_is_read_or_refused(report: Any) -> None:
    try:
        found = read_report(report)
    except DiscoveryError:
        return

    assert found.hostname
