"""Golden command lines: engine, vendor and role. A change of one is a change of what runs.

To renew them on purpose: delete the file and run the test twice.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from controlplane.serving import facts
from controlplane.serving.engines import launcher, launchers
from controlplane.serving.engines.base import (
    SECRET_ARGUMENTS,
    EngineArgumentError,
    EngineRequest,
    inside_pod,
)

GOLDEN = Path(__file__).parent / "golden_engines"
ACCELERATORS = {
    "nvidia": "nvidia-h100-nvl", "amd": "amd-mi325x", "intel-gaudi": "intel-gaudi3",
    "huawei-ascend": "huawei-ascend-910b", "rebellions": "rebellions-atom-max",
    "furiosa": "furiosa-rngd", "intel-gpu": "intel-gpu-max-1550",
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
    for engine in sorted(launchers())
    for vendor in facts.load("engines")[engine]["vendors"]
    for role in ("prefill", "decode", "both")
    if launcher(engine).support(vendor=vendor, precision="bf16", role=role).supported
]


def assert_golden(name: str, engine: str, wanted: EngineRequest) -> None:
    command = launcher(engine).command(wanted)
    found = {
        "argv": list(command.argv),
        "env": dict(command.env),
        "kv_contract": launcher(engine).kv_contract(wanted),
    }
    path = GOLDEN / f"{name}.json"
    if not path.exists():
        path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        pytest.fail(f"{path.name} was missing and is written; look at it and run again.")
    assert found == json.loads(path.read_text())


@pytest.mark.parametrize(("engine", "vendor", "role"), CASES)
def test_the_command_line_on_a_machine_is_the_golden_one(
    engine: str, vendor: str, role: str
) -> None:
    assert_golden(f"{engine}-{vendor}-{role}", engine, request(vendor, role))


@pytest.mark.parametrize(("engine", "vendor", "role"), CASES)
def test_the_command_line_in_a_pod_is_the_golden_one(engine: str, vendor: str, role: str) -> None:
    wanted = inside_pod(request(vendor, role, model_path="/models/granite", offline=True))

    assert_golden(f"pod-{engine}-{vendor}-{role}", engine, wanted)


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


def home(engine: str) -> str:
    return "furiosa" if engine == "furiosa" else "nvidia"


@pytest.mark.parametrize("engine", sorted(launchers()))
def test_an_unknown_argument_is_refused_with_the_nearest_name(engine: str) -> None:
    known = sorted(launcher(engine).known_arguments)[0]
    wanted = request(home(engine), "both", arguments={known + "x": 1})

    with pytest.raises(EngineArgumentError, match=f"Did you mean '{known}'"):
        launcher(engine).command(wanted)


@pytest.mark.parametrize("engine", sorted(launchers()))
@pytest.mark.parametrize("name", ["port", "api-key"])
def test_what_follows_from_the_pool_and_what_is_secret_cannot_be_an_argument(
    engine: str, name: str
) -> None:
    wanted = request(home(engine), "both", arguments={name: "1"})

    reason = "is a secret" if name in SECRET_ARGUMENTS else "cannot be set"
    with pytest.raises(EngineArgumentError, match=reason):
        launcher(engine).command(wanted)


@pytest.mark.parametrize("value", [{"a": 1}, ["x"] * 65, "a\x00b", [None]])
def test_a_value_that_is_no_word_of_a_command_line_is_refused(value: Any) -> None:
    with pytest.raises(EngineArgumentError, match="neither a text"):
        launcher("vllm").command(request("nvidia", "both", arguments={"seed": value}))


def test_the_options_of_the_real_releases_are_known() -> None:
    options = {name: len(launcher(name).known_arguments) for name in ("vllm", "sglang", "furiosa")}

    assert options["vllm"] > 390
    assert options["sglang"] > 520
    assert options["furiosa"] > 50
    for name, words in (
        ("vllm", {"speculative-config", "no-enable-chunked-prefill", "max-lora-rank"}),
        ("sglang", {"hicache-ratio", "tp-size", "speculative-algorithm"}),
        ("furiosa", {"data-parallel-size", "no-enable-prefix-caching", "fxb"}),
    ):
        assert words <= launcher(name).known_arguments


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_parallel_engine_takes_the_slots_after_its_own_and_its_contract_says_so(
    engine: str,
) -> None:
    wanted = request("nvidia", "prefill", tensor_parallel=2, pipeline_parallel=2)

    command, contract = launcher(engine).command(wanted), launcher(engine).kv_contract(wanted)

    assert command.env["CUDA_VISIBLE_DEVICES"] == "3,4,5,6"
    assert command.argv[command.argv.index("--tensor-parallel-size") + 1] == "2"
    assert command.argv[command.argv.index("--pipeline-parallel-size") + 1] == "2"
    assert (contract["tensor_parallel"], contract["pipeline_parallel"]) == (2, 2)


@pytest.mark.parametrize(
    ("engine", "name"), [("vllm", "tensor-parallel-size"), ("sglang", "tp-size")]
)
def test_parallelism_that_a_pool_asks_for_is_in_the_contract(engine: str, name: str) -> None:
    wanted = request("amd", "both", arguments={name: 4})

    assert launcher(engine).parallelism(wanted) == (4, 1)
    assert launcher(engine).kv_contract(wanted)["tensor_parallel"] == 4


@pytest.mark.parametrize(("engine", "option"), [("vllm", "lora-modules"), ("sglang", "lora-paths")])
def test_adapters_are_loaded_by_name(engine: str, option: str) -> None:
    wanted = request("nvidia", "both", adapters={"b": "/lora/b", "a": "/lora/a"})

    argv = launcher(engine).command(wanted).argv

    place = argv.index(f"--{option}")
    assert argv[place + 1 : place + 3] == ("a=/lora/a", "b=/lora/b")
    assert "--enable-lora" in argv


def test_furiosa_loads_no_adapters_and_takes_its_devices_as_an_option() -> None:
    argv = launcher("furiosa").command(request("furiosa", "both", tensor_parallel=2)).argv

    assert argv[argv.index("--devices") + 1] == "npu:3,npu:4"
    with pytest.raises(EngineArgumentError, match="loads no LoRA adapters"):
        launcher("furiosa").command(request("furiosa", "both", adapters={"a": "/lora/a"}))


def test_an_engine_in_a_pod_binds_its_events_and_names_its_pod() -> None:
    argv = launcher("vllm").command(inside_pod(request("nvidia", "prefill"))).argv
    events = json.loads(argv[argv.index("--kv-events-config") + 1])

    assert events["endpoint"] == "tcp://*:5557"
    assert events["replay_endpoint"] == "tcp://*:5558"
    assert events["topic"] == "kv@$(POD_NAME)@granite-4.1-8b"


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_an_engine_on_a_machine_binds_the_port_of_its_events(engine: str) -> None:
    wanted = request("nvidia", "both", kv_replay_port=5558)

    argv = launcher(engine).command(wanted).argv
    events = json.loads(argv[argv.index("--kv-events-config") + 1])

    # vLLM connects to every address but a wildcard; SGLang binds what it is told to bind.
    assert (events["endpoint"].startswith("tcp://*:"), events.get("bind")) == (
        (True, None) if engine == "vllm" else (False, True)
    )
    assert events["replay_endpoint"] == "tcp://127.0.0.1:5558"


@pytest.mark.parametrize("engine", sorted(set(launchers()) - {"furiosa"}))
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
        ("vllm", "huawei-ascend", "bf16", "prefill", "can take the role 'both' only"),
        ("sglang", "intel-gpu", "bf16", "decode", "can take the role 'both' only"),
        ("furiosa", "furiosa", "bf16", "decode", "can take the role 'both' only"),
        ("furiosa", "nvidia", "bf16", "both", "not known to run on 'nvidia'"),
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
    with pytest.raises(KeyError, match="furiosa, sglang, simulated, vllm"):
        launcher("llama")
