"""Engines that are several Pods: how they start, and which of them requests can find."""

import pytest

from controlplane.serving.renderers import _gateway, _sets
from controlplane.serving.renderers.base import RenderRefusedError
from tests.controlplane.serving.renderers.groups import make_group, make_layout, make_pair

SPANNING = {"nodes": 2, "hostnames": (), "worker_argv": ("vllm", "serve", "m", "--headless")}


def test_a_group_of_pods_is_as_large_as_the_nodes_it_spans() -> None:
    spec = _sets.leader_worker_set(make_group(**SPANNING))["spec"]

    template = spec["leaderWorkerTemplate"]
    assert (spec["replicas"], template["size"]) == (1, 2)
    assert template["restartPolicy"] == "RecreateGroupOnPodRestart"


def test_requests_find_the_first_pod_of_an_engine_only() -> None:
    layout = make_layout(make_group(**SPANNING))

    template = _sets.leader_worker_set(layout.groups[0])["spec"]["leaderWorkerTemplate"]

    chosen = _gateway.service(layout)["spec"]["selector"].items()
    assert chosen <= template["leaderTemplate"]["metadata"]["labels"].items()
    assert not chosen <= template["workerTemplate"]["metadata"]["labels"].items()


def test_further_pods_run_their_own_command_and_are_not_probed() -> None:
    template = _sets.set_spec(make_group(**SPANNING))["leaderWorkerTemplate"]

    (container,) = template["workerTemplate"]["spec"]["containers"]
    assert container["command"][-1] == "--headless"
    assert "readinessProbe" not in container


def test_an_engine_over_nodes_without_a_command_for_them_is_refused() -> None:
    with pytest.raises(RenderRefusedError) as refusal:
        _sets.leader_worker_set(make_group(nodes=2))

    assert refusal.value.field == "worker_argv"


def test_names_leave_room_for_what_the_controller_appends() -> None:
    name = _sets.leader_worker_set(make_group(name="n" * 63, **SPANNING))["metadata"]["name"]

    assert len(name) <= 50


def test_a_set_has_its_roles_by_name() -> None:
    roles = _sets.disaggregated_set(make_layout(*make_pair(replicas=2)))["spec"]["roles"]

    assert [role["name"] for role in roles] == ["prefill", "decode"]
    assert [role["spec"]["replicas"] for role in roles] == [2, 2]


def test_two_groups_of_one_role_are_named_after_their_accelerators() -> None:
    prefill, decode = make_pair()
    other = make_group(name="other", role="decode", accelerator="amd-mi325x")

    roles = _sets.disaggregated_set(make_layout(prefill, decode, other))["spec"]["roles"]

    assert [role["name"] for role in roles] == [
        "prefill", "decode-nvidia-h100-nvl", "decode-amd-mi325x",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("overrides", "field"), [({"replicas": None}, "replicas"), ({"patch": [{"op": "x"}]}, "patch")]
)
def test_what_a_set_cannot_express_is_refused(overrides: dict[str, object], field: str) -> None:
    with pytest.raises(RenderRefusedError) as refusal:
        _sets.disaggregated_set(make_layout(*make_pair(**overrides)))

    assert refusal.value.field == field


def test_a_set_without_decode_is_refused() -> None:
    with pytest.raises(RenderRefusedError, match="no decode"):
        _sets.disaggregated_set(make_layout(make_pair()[0]))
