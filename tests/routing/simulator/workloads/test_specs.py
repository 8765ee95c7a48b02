"""How many requests a file asks for is known before any is made."""

import msgspec
import pytest

from routing.simulator.workloads.specs import KINDS, AgentsSpec, ClosedLoopSpec, SharedPrefixSpec


def test_expected_requests() -> None:
    assert SharedPrefixSpec(stages=((10, 5), (20, 5))).expected_requests == 150
    assert AgentsSpec(stages=((10, 5),)).expected_requests == 50
    assert (
        ClosedLoopSpec(requests={}, clients=(4, 6), requests_per_client=3).expected_requests == 30
    )


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_takes_an_unknown_field(kind: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"unknown field|missing required"):
        msgspec.convert({"no-such-field": 1}, KINDS[kind])
