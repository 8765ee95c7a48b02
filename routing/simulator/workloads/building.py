"""From what a file states to a workload."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from routing.core.refusals import DocumentError, refusal
from routing.simulator.notes import Note
from routing.simulator.workloads import catalogue
from routing.simulator.workloads.agents import Agents
from routing.simulator.workloads.closed_loop import ClosedLoop
from routing.simulator.workloads.mixture import Mixture
from routing.simulator.workloads.open_loop import PER_STAGE, OpenLoop, Traffic, ladder
from routing.simulator.workloads.random_lengths import RandomLengths
from routing.simulator.workloads.readers.azure import Sharing, read_azure
from routing.simulator.workloads.readers.inference_perf import read_inference_perf
from routing.simulator.workloads.readers.mooncake import BLOCK_TOKENS, read_mooncake
from routing.simulator.workloads.readers.reading import Bounds, Reading, TraceError
from routing.simulator.workloads.readers.usage import read_usage
from routing.simulator.workloads.shared_prefix import SharedPrefix
from routing.simulator.workloads.specs import (
    KINDS,
    AgentsSpec,
    ClosedLoopSpec,
    InferencePerfSpec,
    MixtureSpec,
    RandomLengthsSpec,
    Read,
    Requests,
    SharedPrefixSpec,
    Spec,
    TraceSpec,
)
from routing.simulator.workloads.trace import Trace

_PACKAGED = Path(__file__).with_name("traces")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A workload and what to tell of it."""

    workload: Traffic
    notes: tuple[Note, ...] = ()


def no_files(path: str) -> bytes:
    """For callers that let no file be named."""
    raise PermissionError(f"no file may be named here, and '{path}' is one")


def build(tree: Any, *, read: Read = no_files, pointer: str = "") -> Built:
    """A workload from its id in the catalogue, that id with other values, or its `kind`.

    Raises DocumentError; `pointer` is where the tree stands in its document.
    """
    if isinstance(tree, str):
        tree = {"id": tree}
    if not isinstance(tree, Mapping):
        raise DocumentError(
            pointer, "A workload is the id of one, or a table with 'id' or 'kind'.", catalogue.ids()
        )
    name, stated = _stated(tree, pointer)
    spec = _spec(stated, pointer)
    if isinstance(spec, Requests) and not spec.stages:
        raise DocumentError(
            f"{pointer}/stages", "There is no stage: pairs of requests per second and seconds."
        )
    expected = 0.0 if isinstance(spec, TraceSpec | InferencePerfSpec) else spec.expected_requests
    if expected > PER_STAGE:
        word = (
            f"The stages send about {expected:,.0f} requests; at most {PER_STAGE:,} are simulated."
        )
        raise DocumentError(f"{pointer}/stages", word)
    return _built(spec, name, read, pointer)


def _stated(tree: Mapping[str, Any], pointer: str) -> tuple[str, dict[str, Any]]:
    """Name and fields, those of the catalogue's entry filled in."""
    fields = dict(tree)
    asked = fields.pop("id", None)
    if asked is None:
        return "own", fields
    if "kind" in fields:
        # A workload of one's own may have a name.
        return str(asked), fields
    entry = catalogue.entry(asked) if isinstance(asked, str) else None
    if entry is None:
        raise DocumentError(f"{pointer}/id", f"No workload is called '{asked}'.", catalogue.ids())
    return entry.id, entry.fields | fields


def _spec(fields: dict[str, Any], pointer: str) -> Spec:
    kind = fields.pop("kind", None)
    form = KINDS.get(kind) if isinstance(kind, str) else None
    if form is None:
        word = "It needs a 'kind' or an 'id'." if kind is None else f"No kind is called '{kind}'."
        raise DocumentError(f"{pointer}/kind", word, tuple(KINDS))
    try:
        return msgspec.convert(fields, form)
    except msgspec.ValidationError as error:
        refused = refusal(str(error), msgspec.json.schema(form))
        raise DocumentError(pointer + refused.pointer, refused.message, refused.allowed) from error


def _built(spec: Spec, name: str, read: Read, pointer: str) -> Built:
    if isinstance(spec, TraceSpec):
        return _trace(spec, name, read, pointer)
    if isinstance(spec, InferencePerfSpec):
        return Built(workload=_inference_perf(spec, name, read, pointer))
    if isinstance(spec, AgentsSpec):
        return Built(workload=_agents(spec, name, pointer))
    if isinstance(spec, ClosedLoopSpec):
        return Built(workload=_closed_loop(spec, name, pointer))
    return Built(workload=_open_loop(spec, name, pointer))


# Kinds.


def _open_loop(spec: Requests, name: str, pointer: str) -> OpenLoop:
    common: dict[str, Any] = {
        "id": name,
        "stages": ladder(*spec.stages, warm_up=spec.warm_up_stages),
        "arrivals_are": spec.arrivals,
        "block_tokens": spec.block_tokens,
    }
    if isinstance(spec, MixtureSpec):
        parts = tuple(
            (
                part.share,
                _part(part.requests, f"{name}.{place}", f"{pointer}/parts/{place}/requests"),
            )
            for place, part in enumerate(spec.parts)
        )
        if any(part.block_tokens != spec.block_tokens for _, part in parts):
            raise DocumentError(f"{pointer}/parts", "All parts have the mixture's block_tokens.")
        return Mixture(parts=parts, **common)
    forms: dict[type, Callable[..., OpenLoop]] = {
        SharedPrefixSpec: SharedPrefix,
        RandomLengthsSpec: RandomLengths,
    }
    own = {
        field: getattr(spec, field)
        for field in spec.__struct_fields__
        if field not in Requests.__struct_fields__
    }
    return forms[type(spec)](**own, **common)


def _part(fields: dict[str, Any], name: str, pointer: str) -> OpenLoop:
    spec = _spec(dict(fields), pointer)
    if not isinstance(spec, SharedPrefixSpec | RandomLengthsSpec | MixtureSpec):
        allowed = ("shared-prefix", "random-lengths", "mixture")
        raise DocumentError(f"{pointer}/kind", "This kind cannot be a part.", allowed)
    if spec.stages:
        raise DocumentError(f"{pointer}/stages", "Stages belong to the whole, not to a part.")
    return _open_loop(spec, name, pointer)


def _closed_loop(spec: ClosedLoopSpec, name: str, pointer: str) -> ClosedLoop:
    return ClosedLoop(
        id=name,
        of=_part(spec.requests, name, f"{pointer}/requests"),
        clients=spec.clients,
        requests_per_client=spec.requests_per_client,
        pause_seconds=spec.pause_seconds,
        ramp_seconds=spec.ramp_seconds,
    )


def _agents(spec: AgentsSpec, name: str, pointer: str) -> Agents:
    least = max(spec.system_tokens, spec.sub_system_tokens)
    if spec.most_tokens <= least:
        word = f"No turn fits into {spec.most_tokens} tokens: a system prompt has {least}."
        raise DocumentError(f"{pointer}/most_tokens", word)
    own = {
        field: getattr(spec, field)
        for field in spec.__struct_fields__
        if field not in ("stages", "warm_up_stages")
    }
    return Agents(id=name, stages=ladder(*spec.stages, warm_up=spec.warm_up_stages), **own)


# Files.


def _trace(spec: TraceSpec, name: str, read: Read, pointer: str) -> Built:
    if (spec.path is None) == (spec.packaged is None):
        raise DocumentError(f"{pointer}/path", "A trace needs either 'path' or 'packaged'.")
    raw = _packaged(spec.packaged, pointer) if spec.packaged else _file(spec.path, read, pointer)
    try:
        reading = read_trace(spec, raw)
    except TraceError as error:
        place = "packaged" if spec.packaged else "path"
        raise DocumentError(f"{pointer}/{place}", f"The trace is refused. {error}") from error
    workload = Trace(
        id=name, requests=reading.requests, block_tokens=reading.block_tokens, speed=spec.speed
    )
    return Built(workload=workload, notes=reading.notes)


def read_trace(spec: TraceSpec, raw: bytes) -> Reading:
    """The requests in the content of a file. Raises TraceError."""
    bounds = Bounds(limit=spec.limit, longest_tokens=spec.longest_tokens)
    if spec.format == "mooncake":
        return read_mooncake(raw, bounds=bounds, block_tokens=spec.block_tokens or BLOCK_TOKENS)
    block_tokens = spec.block_tokens or Requests().block_tokens
    if spec.format == "consort":
        return read_usage(raw, bounds=bounds, block_tokens=block_tokens)
    sharing = Sharing(share=spec.shared_share, groups=spec.groups)
    return read_azure(raw, bounds=bounds, sharing=sharing, block_tokens=block_tokens)


def _packaged(name: str, pointer: str) -> bytes:
    known = sorted(path.name for path in _PACKAGED.iterdir() if path.suffix in (".csv", ".jsonl"))
    if name not in known:
        word = f"No packaged trace is called '{name}'."
        raise DocumentError(f"{pointer}/packaged", word, tuple(known))
    return (_PACKAGED / name).read_bytes()


def _file(path: str | None, read: Read, pointer: str) -> bytes:
    try:
        return read(path or "")
    except OSError as error:
        word = f"'{path}' cannot be read: {error.strerror or error}."
        raise DocumentError(f"{pointer}/path", word) from error


def _inference_perf(spec: InferencePerfSpec, name: str, read: Read, pointer: str) -> Traffic:
    # Loaded here, because most workloads are no YAML.
    from routing.llmd import yaml_text

    raw = _file(spec.path, read, pointer)
    try:
        tree = yaml_text.load(raw)
        return read_inference_perf(tree, name=name, block_tokens=spec.block_tokens)
    except DocumentError as error:
        word = f"{spec.path} is refused{f' at {error.pointer}' if error.pointer else ''}:"
        raise DocumentError(f"{pointer}/path", f"{word} {error.message}", error.allowed) from error
