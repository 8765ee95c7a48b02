"""Configurations of inference-perf (kubernetes-sigs): load stages and generated prompts.

Read are `load` (type, stages) and `data` (type, its parameters); what configures the client or the
server has no meaning here. `data.type` is `shared_prefix`, `random` or `synthetic`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from routing.core.refusals import DocumentError, refusal
from routing.core.specs.base import Count, Positive, Rate, Seconds, Timeout
from routing.simulator.requests import BLOCK_TOKENS
from routing.simulator.workloads.closed_loop import ClosedLoop
from routing.simulator.workloads.open_loop import Arrivals, OpenLoop, ladder
from routing.simulator.workloads.random_lengths import RandomLengths
from routing.simulator.workloads.shared_prefix import SharedPrefix


class _LoadStage(msgspec.Struct, frozen=True):
    rate: Rate | None = None
    duration: Timeout | None = None
    concurrency_level: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    num_requests: Positive | None = None


class _Load(msgspec.Struct, frozen=True):
    stages: Annotated[tuple[_LoadStage, ...], msgspec.Meta(min_length=1, max_length=200)]
    type: Literal["constant", "poisson", "concurrent"] = "constant"


class _SharedPrefix(msgspec.Struct, frozen=True):
    num_groups: Positive
    num_prompts_per_group: Positive
    system_prompt_len: Count
    question_len: Count
    output_len: Positive


class _Lengths(msgspec.Struct, frozen=True):
    mean: Rate
    std_dev: Seconds = 0.0
    max: Positive | None = None


class _Data(msgspec.Struct, frozen=True):
    type: Literal["shared_prefix", "random", "synthetic"]
    shared_prefix: _SharedPrefix | None = None
    input_distribution: _Lengths | None = None
    output_distribution: _Lengths | None = None


class _Configuration(msgspec.Struct, frozen=True):
    load: _Load
    data: _Data


def read_inference_perf(
    tree: Mapping[str, Any], *, name: str, block_tokens: int = BLOCK_TOKENS
) -> OpenLoop | ClosedLoop:
    """What a configuration, already read as YAML, would send. Raises DocumentError."""
    try:
        found = msgspec.convert(tree, _Configuration, strict=False)
    except msgspec.ValidationError as error:
        raise refusal(str(error), msgspec.json.schema(_Configuration)) from error
    load = found.load
    if load.type == "concurrent":
        return _closed(load, _generator(found, name, (), block_tokens), name)
    return _generator(found, name, _steps(load), block_tokens)


def _steps(load: _Load) -> tuple[tuple[float, float], ...]:
    steps = []
    for place, stage in enumerate(load.stages):
        if stage.rate is None or stage.duration is None:
            raise DocumentError(f"/load/stages/{place}", "A stage needs a rate and a duration.")
        steps.append((stage.rate, stage.duration))
    return tuple(steps)


def _closed(load: _Load, of: OpenLoop, name: str) -> ClosedLoop:
    levels, most = [], 1
    for place, stage in enumerate(load.stages):
        if stage.concurrency_level is None or stage.num_requests is None:
            word = "A concurrent stage needs a concurrency_level and num_requests."
            raise DocumentError(f"/load/stages/{place}", word)
        levels.append(stage.concurrency_level)
        most = max(most, -(-stage.num_requests // stage.concurrency_level))
    return ClosedLoop(id=name, of=of, clients=tuple(levels), requests_per_client=most)


def _generator(
    found: _Configuration, name: str, steps: tuple[tuple[float, float], ...], block_tokens: int
) -> OpenLoop:
    data, stages = found.data, ladder(*steps)
    arrivals: Arrivals = "poisson" if found.load.type == "poisson" else "constant"
    if data.type == "shared_prefix":
        shared = data.shared_prefix
        if shared is None:
            raise DocumentError("/data", "Type 'shared_prefix' needs the part 'shared_prefix'.")
        return SharedPrefix(
            id=name,
            stages=stages,
            arrivals_are=arrivals,
            block_tokens=block_tokens,
            groups=shared.num_groups,
            prompts=shared.num_prompts_per_group,
            system_tokens=shared.system_prompt_len,
            question_tokens=shared.question_len,
            output_tokens=shared.output_len,
            output_spread=0.0,
        )
    asked, answered = data.input_distribution, data.output_distribution
    if asked is None or answered is None:
        word = f"Type '{data.type}' needs 'input_distribution' and 'output_distribution'."
        raise DocumentError("/data", word)
    return RandomLengths(
        id=name,
        stages=stages,
        arrivals_are=arrivals,
        block_tokens=block_tokens,
        input_tokens=max(1, round(asked.mean)),
        input_spread=asked.std_dev / asked.mean,
        most_input_tokens=asked.max,
        output_tokens=max(1, round(answered.mean)),
        output_spread=answered.std_dev / answered.mean,
    )
