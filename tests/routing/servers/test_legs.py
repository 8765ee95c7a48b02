"""The prefill leg of a pair, whoever decodes; whole pairs are tested in `test_disaggregated`."""

import pytest

from routing.engines import sglang
from routing.engines.base import members_of
from routing.servers.failures import LegError
from routing.servers.legs import BOOTSTRAP_PORT, may_try_another, meeting_body, starts_nothing
from routing.servers.upstream import Collected, FailureKind

BODY = b'{"model":"m","prompt":"x"}'


def answered(status: int) -> LegError:
    answer = Collected()
    answer.status = status
    return LegError("p", "status", "It failed.", answer)


@pytest.mark.parametrize(
    ("kind", "ticket_holds", "another"),
    [
        ("connect", True, True),
        ("kv_transfer", False, True),
        ("timeout", False, False),
        ("stall", False, False),
        ("status", False, False),
    ],
)
def test_only_what_started_nothing_is_asked_again(
    kind: FailureKind, ticket_holds: bool, another: bool
) -> None:
    failure = LegError("p", kind, "It failed.")

    assert (starts_nothing(failure), may_try_another(failure)) == (ticket_holds, another)


@pytest.mark.parametrize(
    ("status", "again"), [(500, False), (501, False), (502, True), (503, True), (504, True)]
)
def test_an_answer_says_by_its_status_whether_work_began(status: int, again: bool) -> None:
    failure = answered(status)

    assert starts_nothing(failure) == may_try_another(failure) == again


@pytest.mark.parametrize(("port", "told"), [(None, BOOTSTRAP_PORT), (9000, 9000)])
def test_legs_at_once_meet_in_a_room_of_their_own(port: int | None, told: int) -> None:
    bodies = [meeting_body(sglang.Sglang(), BODY, host="p", port=port) for _ in range(2)]

    members = [members_of(body) for body in bodies]
    assert bytes(members[0]["bootstrap_port"]) == str(told).encode()
    rooms = [int(bytes(one["bootstrap_room"])) for one in members]
    assert rooms[0] != rooms[1]
    assert all(0 <= room < 2**63 for room in rooms)
