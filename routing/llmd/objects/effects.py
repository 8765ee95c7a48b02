"""What objects of a gateway mean for one pool: priorities, rewrites, ports, what a gateway does."""

from typing import Any

import msgspec

from routing.core.document import Rewrite, RewriteTarget
from routing.core.refusals import DocumentError
from routing.llmd.notes import Note, NoteKind
from routing.llmd.objects.model import (
    POOL_GROUP,
    FailureMode,
    HttpRoute,
    InferenceModelRewrite,
    InferenceObjective,
    InferencePool,
    RewriteRule,
    RouteRule,
)
from routing.llmd.objects.reading import Objects, Placed


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """For one InferencePool. Without its object ports, labels and failure mode are `None`."""

    pool: str
    objectives: dict[str, int]
    """Priority by name."""
    rewrites: tuple[Rewrite, ...]
    """In the order in which they count: that of the oldest object first, then of its rules."""
    target_ports: tuple[int, ...] | None = None
    match_labels: dict[str, str] | None = None
    failure_mode: FailureMode | None = None
    """What a gateway does while the picker is away."""
    notes: tuple[Note, ...] = ()


def effects_of(objects: Objects, *, pool: str | None = None) -> Effects:
    """What the objects say of a pool, by the name of its InferencePool.

    `pool` may be left out when the objects are about one. Raises DocumentError.
    """
    name = _pool_name(objects, pool)
    reader = _Reader(name)
    for placed in objects.placed:
        reader.take(placed)
    found = reader.found()
    return msgspec.structs.replace(found, notes=objects.notes + found.notes)


def _pool_name(objects: Objects, asked: str | None) -> str:
    named = sorted({name for placed in objects.placed for name in _pools_of(placed.item)})
    if asked is not None:
        if asked not in named:
            raise DocumentError("", f"No object is about a pool '{asked}'.", tuple(named))
        return asked
    if len(named) == 1:
        return named[0]
    if not named:
        raise DocumentError("", "No object is about an InferencePool.")
    raise DocumentError("", "The objects are about several pools; name one.", tuple(named))


def _pools_of(item: Any) -> list[str]:
    """Names of the pools that an object is about; a route only tells of those of others."""
    if isinstance(item, InferencePool):
        return [item.metadata.name]
    if isinstance(item, InferenceObjective | InferenceModelRewrite):
        return [item.spec.pool_ref.name]
    return []


class _Reader:
    """Gathers what the objects say of one pool."""

    def __init__(self, pool: str) -> None:
        self._pool = pool
        self._objectives: dict[str, int] = {}
        self._rewrites: list[tuple[InferenceModelRewrite, int]] = []
        self._own: InferencePool | None = None
        self._notes: list[Note] = []

    def take(self, placed: Placed) -> None:
        item, pointer = placed.item, placed.pointer
        if isinstance(item, HttpRoute):
            self._take_route(item, pointer)
        elif self._pool not in _pools_of(item):
            kind, other = type(item).__name__, ", ".join(_pools_of(item))
            self._note("kept", pointer, f"{kind} {item.metadata.name}", f"is for pool {other}")
        elif isinstance(item, InferencePool):
            self._take_pool(item, pointer)
        elif isinstance(item, InferenceObjective):
            self._take_objective(item, pointer)
        else:
            self._rewrites.append((item, len(self._rewrites)))

    def found(self) -> Effects:
        spec = None if self._own is None else self._own.spec
        picker = None if spec is None else spec.endpoint_picker_ref
        return Effects(
            pool=self._pool,
            objectives=dict(sorted(self._objectives.items())),
            rewrites=tuple(
                _rewrite(rule)
                for rewrite, _ in sorted(self._rewrites, key=_age)
                for rule in rewrite.spec.rules
            ),
            target_ports=None if spec is None else tuple(port.number for port in spec.target_ports),
            match_labels=None if spec is None else spec.selector.match_labels,
            failure_mode=None if picker is None else picker.failure_mode,
            notes=tuple(self._notes),
        )

    def _take_pool(self, pool: InferencePool, pointer: str) -> None:
        if self._own is not None:
            text = f"InferencePool '{self._pool}' stands twice; of two namespaces read one."
            raise DocumentError(f"{pointer}/metadata/name", text)
        self._own = pool
        spec = pool.spec
        if spec.app_protocol != "http":
            where = f"{pointer}/spec/appProtocol"
            self._note("kept", where, spec.app_protocol, "engines are asked by HTTP/1.1")
        if spec.endpoint_picker_ref is None:
            where = f"{pointer}/spec/endpointPickerRef"
            self._note("kept", where, "endpointPickerRef", "is missing: most gateways refuse this")

    def _take_objective(self, objective: InferenceObjective, pointer: str) -> None:
        name = objective.metadata.name
        if name in self._objectives:
            text = f"Objective '{name}' stands twice; of two namespaces read one."
            raise DocumentError(f"{pointer}/metadata/name", text)
        self._objectives[name] = objective.spec.priority or 0

    def _take_route(self, route: HttpRoute, pointer: str) -> None:
        for place, rule in enumerate(route.spec.rules):
            where = f"{pointer}/spec/rules/{place}"
            self._note_split(route, rule, where)
            timeout = rule.timeouts and rule.timeouts.request
            if timeout and self._pool in _backends(rule) and timeout.rstrip("msh") not in ("0", ""):
                text = f"the gateway ends streams of this pool after {timeout[:20]}"
                self._note("kept", f"{where}/timeouts/request", "timeouts.request", text)

    def _note_split(self, route: HttpRoute, rule: RouteRule, where: str) -> None:
        ours, total = _backends(rule).get(self._pool), sum(one.weight for one in rule.backend_refs)
        if ours is None or ours == total > 0:
            return
        share = ours / total if total else 0.0
        text = f"the gateway sends {share:.1%} of this rule here; a router sees that part only"
        self._note("kept", f"{where}/backendRefs", f"HTTPRoute {route.metadata.name}", text)

    def _note(self, kind: NoteKind, pointer: str, subject: str, message: str) -> None:
        self._notes.append(Note(kind=kind, pointer=pointer, subject=subject, message=message))


def _backends(rule: RouteRule) -> dict[str, int]:
    """Weight of each InferencePool of a rule."""
    found: dict[str, int] = {}
    for backend in rule.backend_refs:
        if backend.kind == "InferencePool" and backend.group == POOL_GROUP:
            found[backend.name] = found.get(backend.name, 0) + backend.weight
    return found


def _age(numbered: tuple[InferenceModelRewrite, int]) -> tuple[str, str, str, int]:
    """Oldest first, then by name; one that is not applied yet is younger than all others."""
    rewrite, number = numbered
    metadata = rewrite.metadata
    if metadata.creation_timestamp is None:
        # In the order of the files: nobody knows which will be applied first.
        return "~", "", "", number
    return metadata.creation_timestamp, metadata.namespace, metadata.name, 0


def _rewrite(rule: RewriteRule) -> Rewrite:
    targets = (
        RewriteTarget(model=target.model_rewrite, weight=target.weight) for target in rule.targets
    )
    names = dict.fromkeys(match.model.value for match in rule.matches or ())
    return Rewrite(models=tuple(names), targets=tuple(targets))
