"""From a pool, an accelerator and a role to the engine that should run there."""

import pytest

from controlplane.serving.deployments import desired_spec, engine_request, workload_name
from tests.controlplane.serving.factories import accelerators_of, make_fleet_node, make_pool

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("hostname", "name"),
    [("gpu-1", "gpu-1-3"), ("GPU 1.Site_A", "gpu-1.site-a-3"), ("-x-", "x-3")],
)
def test_a_name_has_only_letters_that_hosts_and_routers_take(hostname: str, name: str) -> None:
    assert workload_name(hostname, 3) == name


def test_equal_wishes_are_equal_specs_and_another_role_is_another_one() -> None:
    pool, accelerator = make_pool(), accelerators_of(make_fleet_node())[0]

    first, again = (desired_spec(pool, accelerator, role="prefill") for _ in range(2))
    other = desired_spec(pool, accelerator, role="decode")

    assert first == again
    assert first["spec_hash"] != other["spec_hash"]


def test_a_real_engine_gets_a_side_channel_of_its_own() -> None:
    accelerators = accelerators_of(make_fleet_node())
    simulated, real = make_pool(), make_pool(engine="vllm")

    ports = [engine_request(real, one, role="prefill").side_channel_port for one in accelerators]

    assert ports == [5600, 5601]
    assert engine_request(simulated, accelerators[0], role="both").side_channel_port is None
