"""Golden command lines: engine, vendor and role. A change of one is a change of what runs.

To renew them on purpose: delete the file and run the test twice.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from controlplane.serving import facts
from controlplane.serving.engines import launcher, launchers
from controlplane.serving.engines.base import EngineArgumentError, EngineRequest

GOLDEN = Path(__file__).parent / "golden_engines"
ACCELERATORS = {
    "nvidia": "nvidia-h100-nvl", "amd": "amd-mi325x", "intel-gaudi": "intel-gaudi3",
    "huawei-ascend": "huawei-ascend-910b", "rebellions": "rebellions-atom-max",
    "furiosa": "furiosa-rngd",
}  # fmt: skip


def request(vendor: str, role: str, **overrides: Any) -> EngineRequest:
    values = {
        "name": "gpu-1-3", "role": role, "vendor": vendor, "accelerator": ACCELERATORS[vendor],
        "slot": 3, "model": "granite-4.1-8b", "model_name": "ibm-granite/granite-4.1-8b",
        "max_model_len": 131072, "kv_heads": 8, "head_size": 128, "side_channel_port": 5603,
        "kv_events_port": 5557,
    }  # fmt: skip
    return EngineRequest(**values | overrides)


CASES = [
    (engine, vendor, role)
    for engine, shipped in (("vllm", "vllm"), ("sglang", "sglang"), ("simulated", "simulated"))
    for vendor in facts.load("engines")[shipped]["vendors"]
    for role in ("prefill", "decode", "both")
    if launcher(engine).support(vendor=vendor, precision="bf16", role=role).supported
]


@pytest.mark.parametrize(("engine", "vendor", "role"), CASES)
def test_the_command_line_is_the_golden_one(engine: str, vendor: str, role: str) -> None:
    wanted = request(vendor, role)
    command = launcher(engine).command(wanted)
    found = {
        "argv": list(command.argv),
        "env": dict(command.env),
        "kv_contract": launcher(engine).kv_contract(wanted),
    }

    path = GOLDEN / f"{engine}-{vendor}-{role}.json"

    if not path.exists():
        path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        pytest.fail(f"{path.name} was missing and is written; look at it and run again.")
    assert found == json.loads(path.read_text())


def test_vllm_says_its_role_by_the_connector_and_gaudi_takes_blocks_of_128() -> None:
    prefill = launcher("vllm").command(request("nvidia", "prefill"))
    decode = launcher("vllm").command(request("intel-gaudi", "decode"))
    both = launcher("vllm").command(request("amd", "both"))

    assert '"kv_role":"kv_producer"' in " ".join(prefill.argv)
    assert '"kv_role":"kv_consumer"' in " ".join(decode.argv)
    assert decode.argv[decode.argv.index("--block-size") + 1] == "128"
    assert decode.argv[decode.argv.index("--max-model-len") + 1] == "9216"
    assert "--kv-transfer-config" not in both.argv
    assert prefill.env["CUDA_VISIBLE_DEVICES"] == "3"
    assert prefill.env["VLLM_NIXL_SIDE_CHANNEL_PORT"] == "5603"


def test_sglang_says_its_role_by_the_disaggregation_mode() -> None:
    argv = launcher("sglang").command(request("nvidia", "prefill")).argv

    assert argv[argv.index("--disaggregation-mode") + 1] == "prefill"
    assert argv[argv.index("--disaggregation-bootstrap-port") + 1] == "5603"


@pytest.mark.parametrize("engine", sorted(launchers()))
def test_an_unknown_argument_is_refused_with_the_nearest_name(engine: str) -> None:
    known = sorted(launcher(engine).known_arguments)[0]
    wanted = request("nvidia", "both", arguments={known + "x": 1})

    with pytest.raises(EngineArgumentError, match=f"Did you mean '{known}'"):
        launcher(engine).command(wanted)


@pytest.mark.parametrize("engine", sorted(launchers()))
def test_an_argument_of_the_pool_wins_over_the_shipped_one(engine: str) -> None:
    name = "page-size" if engine == "sglang" else "block-size"

    wanted = request("nvidia", "both", arguments={name: 64})

    argv = launcher(engine).command(wanted).argv
    assert argv[argv.index(f"--{name}") + 1] == "64"
    assert launcher(engine).block_size_tokens(wanted) == 64


@pytest.mark.parametrize(
    ("engine", "vendor", "precision", "role", "sentence"),
    [
        ("vllm", "furiosa", "bf16", "both", "not known to run on 'furiosa'"),
        ("vllm", "intel-gaudi", "fp16", "both", "runs bf16, fp8, not fp16"),
        ("vllm", "rebellions", "bf16", "prefill", "can take the role 'both' only"),
        ("sglang", "intel-gaudi", "bf16", "both", "not known to run on 'intel-gaudi'"),
        ("simulated", "tenstorrent", "bf16", "both", "has no profile of 'tenstorrent'"),
        ("simulated", "nvidia", "fp8", "both", "not fp8"),
    ],
)
def test_what_an_engine_cannot_do_is_said_with_the_reason(
    engine: str, vendor: str, precision: str, role: Any, sentence: str
) -> None:
    support = launcher(engine).support(vendor=vendor, precision=precision, role=role)

    assert not support.supported
    assert sentence in support.sentence


def test_an_unknown_engine_names_the_known_ones() -> None:
    with pytest.raises(KeyError, match="sglang, simulated, vllm"):
        launcher("llama")
