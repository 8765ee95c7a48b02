"""vLLM's command line: `vllm serve`.

Role: the connector's `kv_role` is `kv_producer` for prefill, `kv_consumer` for decode; an engine of
role both takes part in no hand-over. The side channel is one port per engine. KV events go out over
ZMQ: vLLM binds a port only at the address `*`, at any other it connects to a collector, so what it
publishes can be read by whoever reaches the machine. Usage carries cached tokens. Vendor settings
(block size, batch sizes, memory share, the variable that picks the device) are facts in
`serving/facts/engines.yaml`, options in `serving/facts/arguments.yaml`, each with its source.
"""

from typing import Any

from controlplane.serving import facts
from controlplane.serving.engines.base import (
    OFFLINE,
    SECRET_ARGUMENTS,
    SIDE_CHANNEL_PORT,
    Argument,
    EngineCommand,
    EngineLauncher,
    EngineRequest,
    Role,
    Support,
    checked_arguments,
    compact,
    device_variables,
    flags,
    known_fields,
    shipped_options,
    tcp,
    vendor_refusal,
)

_KV_ROLE = {"prefill": "kv_producer", "decode": "kv_consumer"}
_DTYPE = {"bf16": "bfloat16", "fp16": "float16"}


class Vllm:
    """vLLM on any vendor that the facts name."""

    slug = "vllm"
    program: tuple[str, ...] = ("vllm", "serve")
    own_arguments = frozenset(
        {
            "device-ids",
            "host",
            "kv-events-config",
            "kv-transfer-config",
            "lora-modules",
            "model",
            "no-enable-prompt-tokens-details",
            "port",
            "revision",
            "served-model-name",
            "uds",
        }
    )
    known_arguments = shipped_options("vllm") - own_arguments - SECRET_ARGUMENTS

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
        arguments = self._arguments(request)
        env = device_variables(entry, request)
        if request.role != "both":
            arguments["kv-transfer-config"] = compact(_transfer(request, entry))
            env |= {
                "VLLM_NIXL_SIDE_CHANNEL_HOST": request.own_address,
                "VLLM_NIXL_SIDE_CHANNEL_PORT": str(request.side_channel_port or SIDE_CHANNEL_PORT),
            }
        if request.offline:
            env |= OFFLINE
        return EngineCommand(argv=(*self.program, request.weights, *flags(arguments)), env=env)

    def block_size_tokens(self, request: EngineRequest) -> int:
        """vLLM's own default is 16."""
        return int(str(self._merged(request).get("block-size", 16)))

    def memory_share(self, request: EngineRequest) -> float | None:
        """vLLM's own default is 0.9."""
        return float(str(self._merged(request).get("gpu-memory-utilization", 0.9)))

    def parallelism(self, request: EngineRequest) -> tuple[int, int]:
        """As the command line says."""
        merged = self._merged(request)
        return (
            int(str(merged["tensor-parallel-size"])),
            int(str(merged.get("pipeline-parallel-size", 1))),
        )

    def kv_contract(self, request: EngineRequest) -> dict[str, Any]:
        """What the NIXL handshake compares, as far as it follows from the settings."""
        entry = _vendors()[request.vendor]
        version = entry.get("version") or facts.load("engines")["vllm"]["version"]
        tensor, pipeline = self.parallelism(request)
        # A connector that ships inside the engine has the engine's version.
        connector_version = entry.get("connector_version", version)
        return known_fields(
            {
                "engine": "vllm",
                "engine_version": version,
                "connector": entry["kv_connector"],
                "connector_version": connector_version if entry["kv_connector"] else None,
                "model_revision": request.revision or None,
                "kv_dtype": request.precision,
                "block_size_tokens": self.block_size_tokens(request),
                "kv_heads": request.kv_heads,
                "head_size": request.head_size,
                "tensor_parallel": tensor,
                "pipeline_parallel": pipeline,
                **entry["contract"],
            }
        )

    def _arguments(self, request: EngineRequest) -> dict[str, Argument]:
        arguments: dict[str, Argument] = {
            "host": request.host,
            "port": request.port,
            "served-model-name": request.model,
            "dtype": _DTYPE.get(request.precision, "auto"),
            "enable-prompt-tokens-details": True,
            **self._merged(request),
        }
        # A folder holds one revision; the hub is asked for a named one.
        if request.revision and not request.model_path:
            arguments["revision"] = request.revision
        if request.kv_events_port is not None:
            arguments["kv-events-config"] = compact(_events(request, request.kv_events_port))
        if request.adapters:
            arguments["enable-lora"] = True
            arguments["lora-modules"] = [
                f"{name}={path}" for name, path in sorted(request.adapters.items())
            ]
        return arguments

    def _merged(self, request: EngineRequest) -> dict[str, Argument]:
        shipped: dict[str, Argument] = {
            "max-model-len": request.max_model_len,
            "tensor-parallel-size": request.tensor_parallel,
            **_vendors()[request.vendor]["arguments"],
        }
        if request.pipeline_parallel > 1:
            shipped["pipeline-parallel-size"] = request.pipeline_parallel
        shipped["max-model-len"] = min(int(str(shipped["max-model-len"])), request.max_model_len)
        return checked_arguments(self, shipped, request.arguments)


def _vendors() -> dict[str, dict[str, Any]]:
    vendors: dict[str, dict[str, Any]] = facts.load("engines")["vllm"]["vendors"]
    return vendors


def _transfer(request: EngineRequest, entry: dict[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = {
        "kv_connector": entry["kv_connector"],
        "kv_role": _KV_ROLE[request.role],
        "engine_id": "$(POD_NAME)" if request.in_pod else request.name,
    }
    if entry.get("kv_buffer_device"):
        config["kv_buffer_device"] = entry["kv_buffer_device"]
    return config


def _events(request: EngineRequest, port: int) -> dict[str, Any]:
    config: dict[str, Any] = {
        "enable_kv_cache_events": True,
        "publisher": "zmq",
        "endpoint": tcp("*", port),
        "topic": request.events_topic,
    }
    if request.kv_replay_port is not None:
        # The socket for replay binds any address, so on a machine it stays on the engine's own.
        host = "*" if request.in_pod else request.host
        config["replay_endpoint"] = tcp(host, request.kv_replay_port)
    return config


ENGINE: EngineLauncher = Vllm()
