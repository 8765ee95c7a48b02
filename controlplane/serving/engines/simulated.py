"""The simulated engine's command line: real protocols, modelled times, no accelerator needed.

It declares a KV contract with transport `host-staged`, so that engines of different vendors can
hand over KV through host memory, at the price of the copies. Everything it says about itself is
declared, nothing was measured.
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
    flags,
    known_fields,
)


class Simulated:
    """`python -m routing.testbed.engine`, once per accelerator."""

    slug = "simulated"
    program: tuple[str, ...] = ("python", "-m", "routing.testbed.engine")
    own_arguments = frozenset({"accelerator", "engine-id", "host", "model", "port", "role"})
    known_arguments = frozenset(
        {
            "block-size",
            "kv-hold-seconds",
            "kv-tokens",
            "max-model-len",
            "max-num-batched-tokens",
            "max-num-seqs",
            "slowdown",
            "speed",
        }
    )

    def support(self, *, vendor: str, precision: str, role: Role) -> Support:
        """Vendors that have a profile; a profile stands for 16-bit weights."""
        if vendor not in _facts()["vendors"]:
            return Support(
                supported=False,
                sentence=f"The simulated engine has no profile of '{vendor}'; "
                f"known: {', '.join(sorted(_facts()['vendors']))}.",
            )
        if precision not in {"bf16", "fp16"}:
            return Support(
                supported=False,
                sentence=f"The simulated engine models bf16 and fp16 weights, not {precision}.",
            )
        return Support(
            supported=True,
            sentence=f"The simulated engine models '{vendor}' as {role}; its times are modelled.",
        )

    def command(self, request: EngineRequest) -> EngineCommand:
        """One simulated engine; its times follow the accelerator's profile."""
        arguments: dict[str, Argument] = {
            "host": request.host,
            "port": request.port,
            "model": request.model,
            "accelerator": request.accelerator,
            "role": request.role,
            "engine-id": request.name,
            **self._merged(request),
        }
        if request.side_channel_port is not None:
            arguments["side-channel-port"] = request.side_channel_port
        if request.kv_events_port is not None:
            arguments["kv-events-port"] = request.kv_events_port
        return EngineCommand(argv=(*self.program, *flags(arguments)))

    def block_size_tokens(self, request: EngineRequest) -> int:
        """Blocks as large as on the accelerator that is modelled."""
        return int(str(self._merged(request).get("block-size", 16)))

    def memory_share(self, request: EngineRequest) -> float | None:
        """The share that vLLM takes on the accelerator that is modelled."""
        vendors = facts.load("engines")["vllm"]["vendors"]
        share = vendors.get(request.vendor, {}).get("arguments", {}).get("gpu-memory-utilization")
        return None if share is None else float(share)

    def parallelism(self, request: EngineRequest) -> tuple[int, int]:
        """A profile stands for one accelerator."""
        return 1, 1

    def kv_contract(self, request: EngineRequest) -> dict[str, Any]:
        """Declared: same connector everywhere, the vendor's backend and layout, staged by host."""
        known = _facts()
        return known_fields(
            {
                "engine": "vllm",
                "engine_version": known["version"],
                "connector": "NixlConnector",
                "connector_version": "simulated",
                "transport": "host-staged",
                "staging_device": "cpu",
                "fabric": known["fabric"],
                "transfer_bytes_per_second": float(known["transfer_bytes_per_second"]),
                "model_revision": request.revision or request.model,
                "kv_dtype": request.precision,
                "block_size_tokens": self.block_size_tokens(request),
                "kv_heads": request.kv_heads,
                "head_size": request.head_size,
                "tensor_parallel": 1,
                "pipeline_parallel": 1,
                **known["vendors"][request.vendor]["contract"],
            }
        )

    def _merged(self, request: EngineRequest) -> dict[str, Argument]:
        shipped = _facts()["vendors"][request.vendor]["arguments"]
        return checked_arguments(self, shipped, request.arguments)


def _facts() -> dict[str, Any]:
    known: dict[str, Any] = facts.load("engines")["simulated"]
    return known


ENGINE: EngineLauncher = Simulated()
