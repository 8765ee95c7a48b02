"""SGLang's command line: `python -m sglang.launch_server`.

Role: `--disaggregation-mode prefill` or `decode`; role both leaves it out. A prefill engine listens
for decode engines on its bootstrap port. Usage carries cached tokens with `--enable-cache-report`;
metrics need `--enable-metrics`. Cache events go out over ZMQ; SGLang binds any address that it is
told to bind. Options and vendors are facts in `serving/facts`, each with its source.
"""

from typing import Any

from controlplane.serving import facts
from controlplane.serving.engines.base import (
    OFFLINE,
    SECRET_ARGUMENTS,
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

_DTYPE = {"bf16": "bfloat16", "fp16": "float16"}
BOOTSTRAP_PORT = 8998
"""SGLang's default for the port on which a prefill engine is asked for its KV."""
_SHORT = {"tp-size": "tensor-parallel-size", "pp-size": "pipeline-parallel-size"}
"""Other spellings of options that are read here."""


class Sglang:
    """SGLang on the vendors that the facts name."""

    slug = "sglang"
    program: tuple[str, ...] = ("python", "-m", "sglang.launch_server")
    own_arguments = frozenset(
        {
            "base-gpu-id",
            "disaggregation-bootstrap-port",
            "disaggregation-mode",
            "disaggregation-transfer-backend",
            "enable-cache-report",
            "enable-metrics",
            "host",
            "kv-events-config",
            "lora-paths",
            "model",
            "model-path",
            "port",
            "revision",
            "served-model-name",
        }
    )
    known_arguments = shipped_options("sglang") - own_arguments - SECRET_ARGUMENTS

    def support(self, *, vendor: str, precision: str, role: Role) -> Support:
        """Named vendors and precisions only; prefill and decode need a known transfer backend."""
        refusal = vendor_refusal("SGLang", _vendors(), vendor=vendor, precision=precision)
        if refusal is not None:
            return refusal
        if role != "both" and _vendors()[vendor]["kv_connector"] is None:
            return Support(
                supported=False,
                sentence=f"No transfer backend is known for SGLang on '{vendor}', so it can take "
                "the role 'both' only.",
            )
        return Support(supported=True, sentence=f"SGLang runs {precision} on '{vendor}' as {role}.")

    def command(self, request: EngineRequest) -> EngineCommand:
        """`sglang.launch_server` with role, device, cache and event settings."""
        entry = _vendors()[request.vendor]
        arguments = self._arguments(request)
        if request.role != "both":
            arguments["disaggregation-mode"] = request.role
            arguments["disaggregation-transfer-backend"] = entry["kv_connector"]
        if request.role == "prefill":
            # In a Pod the side channel's port is vLLM's; SGLang keeps its own default there.
            port = None if request.in_pod else request.side_channel_port
            arguments["disaggregation-bootstrap-port"] = port or BOOTSTRAP_PORT
        env = device_variables(entry, request) | (OFFLINE if request.offline else {})
        return EngineCommand(argv=(*self.program, *flags(arguments)), env=env)

    def block_size_tokens(self, request: EngineRequest) -> int:
        """SGLang calls a block a page; its own default is 1."""
        return int(str(self._merged(request).get("page-size", 1)))

    def memory_share(self, request: EngineRequest) -> float | None:
        """None when SGLang works it out itself."""
        share = self._merged(request).get("mem-fraction-static")
        return None if share is None else float(str(share))

    def parallelism(self, request: EngineRequest) -> tuple[int, int]:
        """As the command line says."""
        merged = self._merged(request)
        return (
            int(str(merged["tensor-parallel-size"])),
            int(str(merged.get("pipeline-parallel-size", 1))),
        )

    def kv_contract(self, request: EngineRequest) -> dict[str, Any]:
        """SGLang compares parallelism, page size and type at its bootstrap."""
        entry = _vendors()[request.vendor]
        tensor, pipeline = self.parallelism(request)
        return known_fields(
            {
                "engine": "sglang",
                "engine_version": facts.load("engines")["sglang"]["version"],
                "connector": entry["kv_connector"],
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
            "model-path": request.weights,
            "served-model-name": request.model,
            "host": request.host,
            "port": request.port,
            "dtype": _DTYPE.get(request.precision, "auto"),
            "enable-metrics": True,
            "enable-cache-report": True,
            **self._merged(request),
        }
        # A folder holds one revision; the hub is asked for a named one.
        if request.revision and not request.model_path:
            arguments["revision"] = request.revision
        if request.kv_events_port is not None:
            arguments["kv-events-config"] = compact(_events(request, request.kv_events_port))
        if request.adapters:
            arguments["enable-lora"] = True
            arguments["lora-paths"] = [
                f"{name}={path}" for name, path in sorted(request.adapters.items())
            ]
        return arguments

    def _merged(self, request: EngineRequest) -> dict[str, Argument]:
        shipped: dict[str, Argument] = {
            "context-length": request.max_model_len,
            "tensor-parallel-size": request.tensor_parallel,
            **_vendors()[request.vendor]["arguments"],
        }
        if request.pipeline_parallel > 1:
            shipped["pipeline-parallel-size"] = request.pipeline_parallel
        wanted = {_SHORT.get(name, name): value for name, value in request.arguments.items()}
        return checked_arguments(self, shipped, wanted)


def _events(request: EngineRequest, port: int) -> dict[str, Any]:
    host = "*" if request.in_pod else request.host
    config: dict[str, Any] = {
        "publisher": "zmq",
        "endpoint": tcp(host, port),
        # Without it SGLang connects to an address that is no wildcard.
        "bind": True,
        "topic": request.events_topic,
    }
    if request.kv_replay_port is not None:
        config["replay_endpoint"] = tcp(host, request.kv_replay_port)
    return config


def _vendors() -> dict[str, dict[str, Any]]:
    vendors: dict[str, dict[str, Any]] = facts.load("engines")["sglang"]["vendors"]
    return vendors


ENGINE: EngineLauncher = Sglang()
