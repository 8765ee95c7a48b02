"""Furiosa-LLM's command line: `furiosa-llm serve`, the server of Furiosa's own accelerators.

It speaks the OpenAI API, counts cached tokens in its usage and has `/health` and `/metrics`. What
release 2026.4.0 does not offer: cache events, an option for tensor parallelism (that is fixed when
a bundle is built) and a stable hand-over of KV (its option is hidden), so it takes the role both
only. Its metrics have names of their own, which the router does not read: its load is what the
router itself sent there. Devices are an option, `--devices npu:0`, and not a variable. Options and
versions are facts in `serving/facts`, each with its source.
"""

from typing import Any

from controlplane.serving import facts
from controlplane.serving.engines.base import (
    OFFLINE,
    SECRET_ARGUMENTS,
    Argument,
    EngineArgumentError,
    EngineCommand,
    EngineLauncher,
    EngineRequest,
    Role,
    Support,
    checked_arguments,
    flags,
    known_fields,
    shipped_options,
    vendor_refusal,
)


class Furiosa:
    """Furiosa-LLM on Furiosa's accelerators."""

    slug = "furiosa"
    program: tuple[str, ...] = ("furiosa-llm", "serve")
    own_arguments = frozenset(
        {
            "devices",
            "experimental-kv-transfer-config",
            "host",
            "port",
            "revision",
            "served-model-name",
            "use-mock-backend",
        }
    )
    known_arguments = shipped_options("furiosa") - own_arguments - SECRET_ARGUMENTS

    def support(self, *, vendor: str, precision: str, role: Role) -> Support:
        """Furiosa's accelerators only, in the role both only."""
        refusal = vendor_refusal("Furiosa-LLM", _vendors(), vendor=vendor, precision=precision)
        if refusal is not None:
            return refusal
        if role != "both":
            return Support(
                supported=False,
                sentence="Furiosa-LLM has no stable hand-over of KV, so it can take the role "
                "'both' only.",
            )
        return Support(
            supported=True,
            sentence=f"Furiosa-LLM runs {precision} on '{vendor}' where a bundle of the model is "
            "built for it.",
        )

    def command(self, request: EngineRequest) -> EngineCommand:
        """`furiosa-llm serve`. Raises EngineArgumentError for adapters, which it does not load."""
        if request.adapters:
            names = ", ".join(sorted(request.adapters))
            raise EngineArgumentError(f"Furiosa-LLM loads no LoRA adapters; asked for: {names}.")
        arguments: dict[str, Argument] = {
            "host": request.host,
            "port": request.port,
            "served-model-name": request.model,
            **self._merged(request),
        }
        if not request.in_pod:
            arguments["devices"] = ",".join(f"npu:{slot}" for slot in request.devices)
        if request.revision and not request.model_path:
            arguments["revision"] = request.revision
        env = dict(OFFLINE) if request.offline else {}
        return EngineCommand(argv=(*self.program, request.weights, *flags(arguments)), env=env)

    def block_size_tokens(self, request: EngineRequest) -> int:
        """Its prefix cache matches single tokens; as coarse as vLLM's keeps the index small."""
        return 16

    def memory_share(self, request: EngineRequest) -> float | None:
        """None: it decides itself."""
        return None

    def parallelism(self, request: EngineRequest) -> tuple[int, int]:
        """The tensor parallel size is the bundle's; the pipeline is the command line's."""
        pipeline = self._merged(request).get("pipeline-parallel-size", 1)
        return request.tensor_parallel, int(str(pipeline))

    def kv_contract(self, request: EngineRequest) -> dict[str, Any]:
        """What is known, though no other engine takes its KV."""
        return known_fields(
            {
                "engine": "furiosa",
                "engine_version": facts.load("engines")["furiosa"]["version"],
                "model_revision": request.revision or None,
                "kv_dtype": request.precision,
                "kv_heads": request.kv_heads,
                "head_size": request.head_size,
            }
        )

    def _merged(self, request: EngineRequest) -> dict[str, Argument]:
        shipped: dict[str, Argument] = {
            "max-model-len": request.max_model_len,
            **_vendors()[request.vendor]["arguments"],
        }
        if request.pipeline_parallel > 1:
            shipped["pipeline-parallel-size"] = request.pipeline_parallel
        return checked_arguments(self, shipped, request.arguments)


def _vendors() -> dict[str, dict[str, Any]]:
    vendors: dict[str, dict[str, Any]] = facts.load("engines")["furiosa"]["vendors"]
    return vendors


ENGINE: EngineLauncher = Furiosa()
