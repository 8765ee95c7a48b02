"""vLLM's command line: `vllm serve`, one engine per accelerator.

Role: the connector's `kv_role` is `kv_producer` for prefill, `kv_consumer` for decode; an engine of
role both takes part in no hand-over. The side channel is one port per engine. KV events go out over
ZMQ, usage carries cached tokens. Vendor settings (block size, batch sizes, memory share, the
variable that picks the device) are facts in `serving/facts/engines.yaml`, each with its source.
"""

from typing import Any

from controlplane.serving import facts
from controlplane.serving.engines.base import (
    Argument,
    EngineCommand,
    EngineLauncher,
    EngineRequest,
    Role,
    Support,
    checked_arguments,
    compact,
    flags,
    known_fields,
    vendor_refusal,
)

_KV_ROLE = {"prefill": "kv_producer", "decode": "kv_consumer"}


class Vllm:
    """vLLM on any vendor that the facts name."""

    slug = "vllm"
    program: tuple[str, ...] = ("vllm", "serve")
    known_arguments = frozenset(
        {
            "block-size",
            "data-parallel-size",
            "dtype",
            "enable-lora",
            "enable-prefix-caching",
            "enforce-eager",
            "gpu-memory-utilization",
            "kv-cache-dtype",
            "max-loras",
            "max-lora-rank",
            "max-model-len",
            "max-num-batched-tokens",
            "max-num-seqs",
            "no-enable-prefix-caching",
            "pipeline-parallel-size",
            "quantization",
            "seed",
            "tensor-parallel-size",
            "tokenizer",
            "trust-remote-code",
        }
    )

    def support(self, *, vendor: str, precision: str, role: Role) -> Support:
        """Named vendors only; prefill and decode need a KV connector that is known to work."""
        refusal = vendor_refusal("vLLM", _vendors(), vendor=vendor, precision=precision)
        if refusal is not None:
            return refusal
        entry = _vendors()[vendor]
        if role != "both" and entry["kv_connector"] is None:
            return Support(
                supported=False,
                sentence=f"No KV connector is known for vLLM on '{vendor}', so it can take the "
                "role 'both' only.",
            )
        return Support(supported=True, sentence=f"vLLM runs {precision} on '{vendor}'.")

    def command(self, request: EngineRequest) -> EngineCommand:
        """`vllm serve` with role, device, cache and event settings."""
        entry = _vendors()[request.vendor]
        arguments: dict[str, Argument] = {
            "host": request.host,
            "port": request.port,
            "served-model-name": request.model,
            "dtype": _DTYPE.get(request.precision, "auto"),
            "tensor-parallel-size": 1,
            "enable-prompt-tokens-details": True,
            **self._merged(request),
        }
        if request.revision:
            arguments["revision"] = request.revision
        if request.kv_events_port is not None:
            arguments["kv-events-config"] = compact(_events(request))
        env = {entry["device_env"]: str(request.slot)} if entry["device_env"] else {}
        if request.role != "both":
            arguments["kv-transfer-config"] = compact(_transfer(request, entry))
            env |= {
                "VLLM_NIXL_SIDE_CHANNEL_HOST": request.host,
                "VLLM_NIXL_SIDE_CHANNEL_PORT": str(request.side_channel_port or 5600),
            }
        return EngineCommand(argv=(*self.program, request.model_name, *flags(arguments)), env=env)

    def block_size_tokens(self, request: EngineRequest) -> int:
        """vLLM's own default is 16."""
        return int(self._merged(request).get("block-size", 16))

    def memory_share(self, request: EngineRequest) -> float | None:
        """vLLM's own default is 0.9."""
        return float(self._merged(request).get("gpu-memory-utilization", 0.9))

    def kv_contract(self, request: EngineRequest) -> dict[str, Any]:
        """What the NIXL handshake compares, as far as it follows from the settings."""
        entry = _vendors()[request.vendor]
        version = facts.load("engines")["vllm"]["version"]
        return known_fields(
            {
                "engine": "vllm",
                "engine_version": version,
                "connector": entry["kv_connector"],
                # The connector ships inside the engine, so its version is the engine's.
                "connector_version": version if entry["kv_connector"] else None,
                "model_revision": request.revision or None,
                "kv_dtype": request.precision,
                "block_size_tokens": self.block_size_tokens(request),
                "kv_heads": request.kv_heads,
                "head_size": request.head_size,
                "tensor_parallel": 1,
                "pipeline_parallel": 1,
                **entry["contract"],
            }
        )

    def _merged(self, request: EngineRequest) -> dict[str, Argument]:
        shipped = {
            "max-model-len": request.max_model_len,
            **_vendors()[request.vendor]["arguments"],
        }
        shipped["max-model-len"] = min(int(shipped["max-model-len"]), request.max_model_len)
        return checked_arguments(shipped, request.arguments, self.known_arguments)


_DTYPE = {"bf16": "bfloat16", "fp16": "float16"}


def _vendors() -> dict[str, dict[str, Any]]:
    vendors: dict[str, dict[str, Any]] = facts.load("engines")["vllm"]["vendors"]
    return vendors


def _transfer(request: EngineRequest, entry: dict[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = {
        "kv_connector": entry["kv_connector"],
        "kv_role": _KV_ROLE[request.role],
        "engine_id": request.name,
    }
    if entry.get("kv_buffer_device"):
        config["kv_buffer_device"] = entry["kv_buffer_device"]
    return config


def _events(request: EngineRequest) -> dict[str, Any]:
    return {
        "enable_kv_cache_events": True,
        "publisher": "zmq",
        "endpoint": f"tcp://{request.host}:{request.kv_events_port}",
        "topic": f"kv@{request.name}@{request.model}",
    }


ENGINE: EngineLauncher = Vllm()
