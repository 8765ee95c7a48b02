"""From a pool, an accelerator and a role to the engine that should run there; no query here."""

import re
from typing import TYPE_CHECKING, Any

from controlplane.serving.engines import launcher
from controlplane.serving.engines.base import EngineRequest
from controlplane.serving.plans import spec_hash

if TYPE_CHECKING:
    from controlplane.serving.models import Pool
    from inventory.models import Accelerator

SIDE_CHANNEL_PORT = 5600
"""NIXL's default; each engine of a node takes the one at its slot's distance."""


def workload_name(hostname: str, slot: int) -> str:
    """Name of the engine of one accelerator, on hosts, routers and pages."""
    return f"{re.sub(r'[^a-z0-9.-]+', '-', hostname.lower()).strip('-.')}-{slot}"


def engine_request(pool: "Pool", accelerator: "Accelerator", *, role: str) -> EngineRequest:
    """The engine described without any engine's own words."""
    model = pool.model
    is_real = pool.engine != "simulated"
    return EngineRequest(
        name=workload_name(accelerator.node.hostname, accelerator.slot),
        role=role,  # type: ignore[arg-type]  # the column allows only roles
        vendor=accelerator.vendor,
        accelerator=accelerator.model.slug,
        slot=accelerator.slot,
        model=model.slug,
        model_name=model.name,
        revision=model.revision,
        precision=model.precision,
        max_model_len=model.max_model_len,
        kv_heads=model.kv_heads,
        head_size=model.head_size,
        side_channel_port=SIDE_CHANNEL_PORT + accelerator.slot if is_real else None,
        arguments=pool.engine_arguments,
    )


def desired_spec(
    pool: "Pool", accelerator: "Accelerator", *, role: str, url: str = ""
) -> dict[str, Any]:
    """What a workload is wanted to be; equal inputs give an equal `spec_hash`.

    `url` is the address of an engine that somebody else runs.
    """
    request = engine_request(pool, accelerator, role=role)
    engine = launcher(pool.engine)
    command = engine.command(request)
    return {
        "engine": pool.engine,
        "url": url,
        "argv": list(command.argv),
        "env": dict(command.env),
        "spec_hash": spec_hash(command.argv, command.env),
        "model": pool.model.slug,
        "role": role,
        "block_size_tokens": engine.block_size_tokens(request),
        "memory_share": engine.memory_share(request),
        "kv_contract": engine.kv_contract(request),
    }
