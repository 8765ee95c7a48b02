"""What each renderer writes for each vendor, engine and split of roles; kept in `golden/`.

Write them again after a change on purpose, and look at the difference:
`python -m tests.controlplane.serving.renderers.golden_cases`.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from controlplane.serving.containers import engine_group, read_settings
from controlplane.serving.engines.base import EngineCommand, EngineRequest
from controlplane.serving.renderers import renderer
from controlplane.serving.renderers._picker import llmd_default
from controlplane.serving.renderers._text import yaml_of
from controlplane.serving.renderers.base import (
    ArtefactVolume,
    EngineGroup,
    GatewayReference,
    Manifest,
    PickerImages,
    PickerReference,
    PoolLayout,
)
from routing.core.document import Policy

FOLDER = Path(__file__).parent / "golden"
ACCELERATORS = {
    "nvidia": "nvidia-h100-nvl", "amd": "amd-mi325x", "intel-gaudi": "intel-gaudi3",
    "huawei-ascend": "huawei-ascend-910b", "rebellions": "rebellions-atom-max",
    "furiosa": "furiosa-rngd",
}  # fmt: skip
ENGINES = {"vllm": tuple(ACCELERATORS), "sglang": ("nvidia", "amd")}
FURTHER = {
    "intel-gpu": "intel-max-1550", "google-tpu": "google-tpu-v6e", "aws-neuron": "aws-trainium2",
    "tenstorrent": "tenstorrent-n300", "cambricon": "cambricon-mlu370",
}  # fmt: skip
"""Vendors whose devices are given out in further ways; one format shows each."""
SPLITS = {"unified": ("both",), "disaggregated": ("prefill", "decode")}
IMAGES = PickerImages(
    picker="registry.example/llm-d/router:0.10.0", sidecar="registry.example/llm-d/sidecar:0.10.0"
)
GATEWAY = GatewayReference(name="inference-gateway", namespace="gateways")
MODEL = "ibm-granite/granite-4.1-8b"
# Not the engines' own command lines, which have golden files of their own: a change there should
# not change these files.
COMMANDS = {
    "vllm": ("vllm", "serve", MODEL, "--host", "$(POD_IP)", "--max-model-len", "8192",
             "--port", "8000", "--served-model-name", "granite-4.1-8b"),
    "sglang": ("python", "-m", "sglang.launch_server", "--host", "$(POD_IP)",
               "--model-path", MODEL, "--port", "8000"),
}  # fmt: skip


def make_engines(vendor: str, engine: str, role: str, **settings: Any) -> EngineGroup:
    """A group of two engines as the settings of a pool make it."""
    is_apart = role != "both"
    request = EngineRequest(
        name=f"granite-{role}", role=role, vendor=vendor,
        accelerator=(ACCELERATORS | FURTHER)[vendor], slot=0, model="granite-4.1-8b",
        model_name=MODEL, revision="main", max_model_len=8192,
        host="$(POD_IP)", port=8000, side_channel_port=5600 if is_apart else None,
        kv_events_port=5557,
    )  # fmt: skip
    env = {"VLLM_NIXL_SIDE_CHANNEL_HOST": "$(POD_IP)", "VLLM_NIXL_SIDE_CHANNEL_PORT": "5600"}
    command = EngineCommand(
        argv=COMMANDS[engine], env=env if is_apart and engine == "vllm" else {}
    )  # fmt: skip
    values = {"namespace": "llm", "images": {vendor: f"registry.example/{engine}-{vendor}:1.0"}}
    group = engine_group(
        read_settings(values | settings), request, command, pool="granite", engine=engine
    )  # fmt: skip
    return replace(group, replicas=2)


def layout_of(vendor: str, engine: str, roles: tuple[str, ...], **settings: Any) -> PoolLayout:
    """A pool whose engines are all alike."""
    return PoolLayout(
        pool="granite", namespace="llm", picker_images=IMAGES,
        groups=tuple(make_engines(vendor, engine, role, **settings) for role in roles),
    )  # fmt: skip


def cases() -> Iterator[tuple[str, list[Manifest]]]:
    """Name of the file and what is written into it."""
    for engine, vendors in ENGINES.items():
        for vendor in vendors:
            for split, roles in SPLITS.items():
                layout = layout_of(vendor, engine, roles)
                for slug in _formats(engine):
                    yield f"{slug}-{engine}-{vendor}-{split}", renderer(slug).render(layout)
    yield from _special_cases()


def _formats(engine: str) -> tuple[str, ...]:
    every = ("plain", "llm-d", "production-stack")
    return (*every, "kserve") if engine == "vllm" else every


def _special_cases() -> Iterator[tuple[str, list[Manifest]]]:
    unified = layout_of("nvidia", "vllm", ("both",))
    apart = layout_of("amd", "vllm", ("prefill", "decode"))
    condition = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('70Gi')) >= 0"
    claims = layout_of(
        "nvidia", "vllm", ("both",), claims=True,
        devices={"nvidia": {"conditions": [condition]}},
    )  # fmt: skip
    for slug in ("plain", "llm-d", "kserve"):
        yield f"{slug}-claims", renderer(slug).render(claims)
        yield f"{slug}-gateway", renderer(slug).render(_with_gateway(unified, slug))
    for vendor in FURTHER:
        yield f"plain-{vendor}", renderer("plain").render(layout_of(vendor, "vllm", ("both",)))
    yield "plain-set", renderer("plain").render(replace(apart, as_set=True))
    yield "plain-several-nodes", renderer("plain").render(_over_nodes(unified))
    yield "plain-stable-names", renderer("plain").render(_each(unified, has_stable_names=True))
    yield "plain-autoscaled", renderer("plain").render(_each(unified, replicas=None))
    for kind, source in (
        ("pvc", "weights"),
        ("node-path", "/srv/models"),
        ("oci", "r.example/m:1"),
    ):
        volume = ArtefactVolume(kind=kind, source=source, sub_path="granite")  # type: ignore[arg-type]
        yield f"plain-model-{kind}", renderer("plain").render(_each(unified, artefact=volume))
    yield "plain-secrets", renderer("plain").render(_with_secrets())
    gaudi = replace(make_engines("intel-gaudi", "vllm", "both"), name="granite-both-gaudi")
    both = (*unified.groups, gaudi)
    yield "plain-two-vendors", renderer("plain").render(replace(unified, groups=both))
    policy = llmd_default(disaggregated=False)
    yield "kserve-policy", renderer("kserve").render(replace(unified, policy=policy))
    turns = replace(unified, policy=Policy(name="session-hash"))
    yield "production-stack-sessions", renderer("production-stack").render(turns)
    document = replace(unified, document=b'{"schema_version":1,"pool":"granite"}')
    yield "router-document", renderer("router").render(document)


def _each(layout: PoolLayout, **changes: Any) -> PoolLayout:
    return replace(layout, groups=tuple(replace(group, **changes) for group in layout.groups))


def _with_gateway(layout: PoolLayout, slug: str) -> PoolLayout:
    picker = PickerReference(name="own-picker") if slug == "plain" else None
    return replace(layout, gateway=GATEWAY, picker=picker)


def _over_nodes(layout: PoolLayout) -> PoolLayout:
    shared = ("--nnodes", "2", "--master-addr", "$(LWS_LEADER_ADDRESS)")
    argv = (*COMMANDS["vllm"], *shared, "--node-rank", "0")
    others = (*COMMANDS["vllm"], *shared, "--node-rank", "$(LWS_WORKER_INDEX)", "--headless")
    return _each(layout, nodes=2, argv=argv, worker_argv=others)


def _with_secrets() -> PoolLayout:
    return layout_of(
        "nvidia", "vllm", ("both",), image_pull_secrets=["registry"], env={"NCCL_DEBUG": "WARN"},
        secrets=[{"variable": "HF_TOKEN", "secret": "hub", "key": "token"}],
        service_account="engines", labels={"team": "search"}, cpu_millis=8000, memory_mib=98304,
    )  # fmt: skip


def write_all() -> None:
    """Make the folder say what the renderers say."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.yaml"):
        path.unlink()
    for name, manifests in cases():
        (FOLDER / f"{name}.yaml").write_text(yaml_of(manifests), encoding="utf-8")


if __name__ == "__main__":
    write_all()
