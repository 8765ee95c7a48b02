"""Health as gateways and Kubernetes ask for it."""

import pytest

from routing.servers.faces.ext_proc.health import status_of
from tests.routing.servers.scripted import Stage

SERVING, NOT_SERVING, UNKNOWN = 1, 2, 3
READINESS = ("readiness", "envoy.service.ext_proc.v3.ExternalProcessor", "")


def told(stage: Stage, *names: str) -> set[int]:
    return {status_of(stage.router.state, name) for name in names}


async def test_it_is_ready_once_there_are_endpoints(stage: Stage) -> None:
    assert told(stage, "liveness") == {SERVING}
    assert told(stage, *READINESS) == {NOT_SERVING}
    await stage.load()
    assert told(stage, *READINESS) == {NOT_SERVING}

    await stage.engine("a")
    await stage.load(version=2)

    assert told(stage, *READINESS) == {SERVING}


async def test_a_draining_picker_lives_and_is_not_ready(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()
    stage.router.state.is_draining = True

    assert told(stage, *READINESS) == {NOT_SERVING}
    assert told(stage, "liveness") == {SERVING}


@pytest.mark.parametrize("name", ["Readiness", "envoy", "x"])
async def test_other_names_are_not_known(stage: Stage, name: str) -> None:
    assert told(stage, name) == {UNKNOWN}
