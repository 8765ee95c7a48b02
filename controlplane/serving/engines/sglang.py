"""SGLang's command line: `python -m sglang.launch_server`, one engine per accelerator.

Role: `--disaggregation-mode prefill` or `decode`; role both leaves it out. A prefill engine listens
for decode engines on its bootstrap port. Usage carries cached tokens with
`--enable-cache-report`; metrics need `--enable-metrics`.
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

_DTYPE = {"bf16": "bfloat16", "fp16": "float16"}
BOOTSTRAP_PORT = 8998
"""SGLang's default for the port on which a prefill engine is asked for its KV."""


class Sglang:
    """SGLang on the vendors that the facts name."""

    slug = "sglang"
    program: tuple[str, ...] = ("python", "-m", "sglang.launch_server")
    known_arguments = frozenset(
        {
            "chunked-prefill-size",
            "context-length",
            "data-parallel-size",
            "disable-radix-cache",
            "dtype",
            "enable-lora",
            "kv-cache-dtype",
            "max-loras-per-batch",
            "max-running-requests",
            "mem-fraction-static",
            "page-size",
            "quantization",
            "random-seed",
            "schedule-policy",
            "tensor-parallel-size",
            "trust-remote-code",
        }
    )

    def support(self, *, vendor: str, precision: str, role: Role) -> Support:
        """Named vendors and precisions only."""
        refusal = vendor_refusal("SGLang", _vendors(), vendor=vendor, precision=precision)
        if refusal is not None:
            return refusal
        return Support(supported=True, sentence=f"SGLang runs {precision} on '{vendor}' as {role}.")

    def command(self, request: EngineRequest) -> EngineCommand:
        """`sglang.launch_server` with role, device, cache and event settings."""
        entry = _vendors()[request.vendor]
        arguments: dict[str, Argument] = {
            "model-path": request.model_name,
            "served-model-name": request.model,
            "host": request.host,
            "port": request.port,
            "dtype": _DTYPE.get(request.precision, "auto"),
            "tensor-parallel-size": 1,
            "enable-metrics": True,
            "enable-cache-report": True,
            **self._merged(request),
        }
        if request.revision:
            arguments["revision"] = request.revision
        if request.role != "both":
            arguments["disaggregation-mode"] = request.role
            arguments["disaggregation-transfer-backend"] = entry["kv_connector"]
        if request.role == "prefill":
            arguments["disaggregation-bootstrap-port"] = request.side_channel_port or BOOTSTRAP_PORT
        if request.kv_events_port is not None:
            arguments["kv-events-config"] = compact(
                {
                    "publisher": "zmq",
                    "endpoint": f"tcp://{request.host}:{request.kv_events_port}",
                    "topic": f"kv@{request.name}@{request.model}",
                }
            )
        return EngineCommand(
            argv=(*self.program, *flags(arguments)), env={entry["device_env"]: str(request.slot)}
        )

    def block_size_tokens(self, request: EngineRequest) -> int:
        """SGLang calls a block a page; its own default is 1."""
        return int(self._merged(request).get("page-size", 1))

    def memory_share(self, request: EngineRequest) -> float | None:
        """None when SGLang works it out itself."""
        share = self._merged(request).get("mem-fraction-static")
        return None if share is None else float(share)

    def kv_contract(self, request: EngineRequest) -> dict[str, Any]:
        """SGLang compares parallelism, page size and type at its bootstrap."""
        entry = _vendors()[request.vendor]
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
                "tensor_parallel": 1,
                "pipeline_parallel": 1,
                **entry["contract"],
            }
        )

    def _merged(self, request: EngineRequest) -> dict[str, Argument]:
        shipped = {
            "context-length": request.max_model_len,
            **_vendors()[request.vendor]["arguments"],
        }
        return checked_arguments(shipped, request.arguments, self.known_arguments)


def _vendors() -> dict[str, dict[str, Any]]:
    vendors: dict[str, dict[str, Any]] = facts.load("engines")["sglang"]["vendors"]
    return vendors


ENGINE: EngineLauncher = Sglang()
