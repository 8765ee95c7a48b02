"""A failed leg knows the status that is written down for it."""

import pytest

from routing.servers.failures import LegError
from routing.servers.upstream import Collected


@pytest.mark.parametrize(("answered", "status"), [(None, 503), (500, 500), (502, 502)])
def test_the_status_is_the_engines_own_or_503(answered: int | None, status: int) -> None:
    answer = None
    if answered is not None:
        answer = Collected()
        answer.status = answered

    assert LegError("a", "status", "It failed.", answer).status == status
