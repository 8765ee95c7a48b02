"""Engines, sequences and samples for the tests of the testbed."""

import json
from array import array
from pathlib import Path
from typing import Any

from routing.simulator.profiles import load_profile
from routing.testbed import tokens as tk
from routing.testbed.engine import Engine
from routing.testbed.events import EventLog
from routing.testbed.scheduler import EngineModel, Limits
from routing.testbed.sequence import Sequence
from routing.testbed.settings import EngineSettings

MODEL = "granite-4.1-8b"
SAMPLES = Path(__file__).with_name("samples")


def sample(name: str) -> Any:
    """A capture of vLLM 0.32.0, decoded."""
    return json.loads((SAMPLES / f"vllm-0.32.0-{name}.json").read_text())


def make_model(
    *,
    accelerator: str = "nvidia-h100-nvl",
    block_size: int = 16,
    blocks: int | None = None,
    sequences: int = 256,
    batched_tokens: int | None = None,
    log: EventLog | None = None,
) -> EngineModel:
    """An engine model with the profile's sizes."""
    profile = load_profile(accelerator, MODEL)
    limits = Limits(
        block_size=block_size,
        blocks=blocks or profile.kv_tokens // block_size,
        sequences=sequences,
        batched_tokens=batched_tokens or profile.max_num_batched_tokens,
    )
    return EngineModel(profile, limits, log=log)


def make_sequence(
    prompt: "array[int] | int" = 100,
    *,
    name: str = "cmpl-1",
    output: int = 8,
    arrived: float = 0.0,
    block_size: int = 16,
    salt: str | None = None,
    hold: bool = False,
    start: int = 0,
) -> Sequence:
    """A sequence; a number as prompt is that many tokens, counted up from `start`."""
    tokens = array("I", range(start, start + prompt)) if isinstance(prompt, int) else prompt
    root = tk.root_key(salt)
    return Sequence(
        id=name,
        tokens=array("I", tokens),
        keys=tk.block_keys(tokens, block_size, root),
        root=root,
        salt=salt,
        max_output=output,
        arrived=arrived,
        ignore_eos=True,
        hold=hold,
    )


def make_settings(**overrides: Any) -> EngineSettings:
    """Settings of a fast engine on free ports."""
    values: dict[str, Any] = {
        "model": MODEL,
        "accelerator": "nvidia-h100-nvl",
        "engine_id": "0123abcd-0000-4000-8000-000000000000",
        "speed": 100.0,
    }
    return EngineSettings(**(values | overrides))


def shape(value: Any) -> Any:
    """The keys and types of JSON, without its values; lists by their first element."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def url(engine: Engine, path: str = "") -> str:
    """Address of an engine's route."""
    return f"http://127.0.0.1:{engine.port}{path}"


def chat(text: str = "Say hello.", **more: Any) -> dict[str, Any]:
    """Body of a chat request."""
    messages = [{"role": "system", "content": "You answer."}, {"role": "user", "content": text}]
    body = {"model": MODEL, "messages": messages, "max_tokens": 8, "ignore_eos": True}
    return body | more


def completion(prompt: Any = "Once upon a time", **more: Any) -> dict[str, Any]:
    """Body of a completion request."""
    return {"model": MODEL, "prompt": prompt, "max_tokens": 8, "ignore_eos": True} | more


def sse_events(text: str) -> list[dict[str, Any]]:
    """Events of a stream that ends as it should."""
    lines = [line for line in text.split("\n") if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def named_events(text: str) -> list[dict[str, Any]]:
    """Events of a stream whose events have names; each name is the event's own type."""
    found = []
    for part in text.removesuffix("\n\n").split("\n\n"):
        name, _, data = part.partition("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        found.append(event)
    return found


def metric(page: str, name: str, **labels: str) -> float:
    """Sum of a metric's series that carry the labels."""
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    lines = [line for line in page.split("\n") if line.startswith((f"{name}{{", f"{name} "))]
    assert lines, f"{name} is not on the page"
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if all(w in line for w in wanted))
