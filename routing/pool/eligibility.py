"""Hard filters: which endpoints may take part in a request. No score, weight, header, session or
fallback overrules them.

Rules in order, each named in the decision record:
- `role`: a prefill endpoint never answers (named when a pool has nothing else);
- `jurisdiction`, `operator`: residency of the tenant; an endpoint that does not state one is out;
- `capability`: the model requires what the endpoint's accelerators do not have;
- `adapter`: the model is an adapter that the endpoint cannot serve;
- `state`: draining takes nothing;
- `context-length`: prompt and longest answer do not fit, while another endpoint takes more;
- `breaker`: it failed lately;
- `excluded`: this request failed there already;
- `subset`: the gateway does not send this request there;
- `forced`, `avoided`: a test's own choice, which only narrows what the rules above left.

The KV contract, and the path between two endpoints, are rules of pairs: see `routing.pool.pairs`.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from routing.core.document import ModelSpec, TenantSpec
from routing.core.pricing import Rows
from routing.core.request import InferenceRequest
from routing.core.table import EndpointTable, Flags

RESIDENCY_RULES: Final = ("jurisdiction", "operator")
"""Rules whose refusal is a policy's (403), not a lack of capacity (503)."""
_REMEMBERED: Final = 256
"""Combinations of residency and model whose masks are kept."""


class Residency(msgspec.Struct, frozen=True):
    """Where a request and its KV may be, and who may run the nodes; `None` is anywhere, anybody."""

    jurisdictions: tuple[str, ...] | None
    operators: tuple[str, ...] | None

    @property
    def one_place(self) -> bool:
        """Pairs stay within one jurisdiction: what lies on a path across a border is unknown."""
        return self.jurisdictions is not None


ANYWHERE: Final = Residency(None, None)


def residency_of(tenant: TenantSpec | None, request: InferenceRequest) -> Residency:
    """What both the request and its tenant's entry allow."""
    ours = None if tenant is None else tenant.jurisdictions
    operators = None if tenant is None else tenant.operators
    asked = request.jurisdictions
    if ours is None and asked is None and operators is None:
        return ANYWHERE
    if ours is None or asked is None:
        return Residency(asked if ours is None else ours, operators)
    return Residency(tuple(place for place in ours if place in asked), operators)


@dataclass(frozen=True, slots=True)
class Eligibility:
    """Masks over the table's rows."""

    answers: Flags
    """May be the destination."""
    prefills: Flags
    """May compute a prompt for a destination."""
    removed: tuple[tuple[str, Flags], ...]
    forbidden: bool
    """Residency alone removed every endpoint that could ever answer."""
    rows: Rows
    """The rows of `answers`."""
    has_prefills: bool
    one_place: bool
    gate: Hashable
    """Equal where the document's rules leave the same endpoints."""

    emptied_by: str = ""
    """The rule that left nobody to answer: `no-endpoints` when the pool has none."""


class EligibilityRules:
    """The masks that depend on the document only are computed once per residency and model."""

    def __init__(self, table: EndpointTable, models: tuple[ModelSpec, ...]) -> None:
        self._table = table
        self._models = {model.name: model for model in models}
        self._base: dict[tuple[Residency, str], Eligibility] = {}
        self._operators = tuple(instance.spec.operator for instance in table.instances)

    def has_model(self, name: str) -> bool:
        """Whether the document names a model."""
        return name in self._models

    def of(
        self,
        request: InferenceRequest,
        residency: Residency,
        *,
        exclude: frozenset[str],
        has_breakers: bool,
        now: float,
    ) -> Eligibility:
        """Endpoints that may serve such a request at this moment."""
        base = self.base_of(residency, request.model)
        parsed = request.parsed
        dynamic = self._too_short(parsed.prompt_tokens + (parsed.max_tokens or 0), base)
        if has_breakers:
            dynamic.append(("breaker", self._broken(now)))
        if exclude:
            dynamic.append(("excluded", self._named(exclude)))
        if request.subset is not None:
            dynamic.append(("subset", ~self._named(request.subset)))
        if request.forced:
            dynamic.append(("forced", self._unforced(request.forced)))
        if request.avoided:
            dynamic.append(("avoided", self._named(request.avoided)))
        return self._narrowed(base, dynamic) if dynamic else base

    def gate_of(self, request: InferenceRequest, residency: Residency) -> Hashable:
        """Equal for requests that may use the same endpoints, whatever their state at present."""
        base = self.base_of(residency, request.model)
        parsed = request.parsed
        short = self._too_short(parsed.prompt_tokens + (parsed.max_tokens or 0), base)
        length = short[0][1].tobytes() if short else b""
        return base.gate, length, request.subset, request.forced, request.avoided

    def lets_answer(self, endpoint: str, request: InferenceRequest, residency: Residency) -> bool:
        """Whether the document's rules leave an endpoint for such a request, whatever its state."""
        row = self._table.row_of.get(endpoint)
        if row is None:
            return False
        base = self.base_of(residency, request.model)
        parsed = request.parsed
        short = self._too_short(parsed.prompt_tokens + (parsed.max_tokens or 0), base)
        return bool(base.answers[row]) and not any(out[row] for _, out in short)

    def _narrowed(self, base: Eligibility, dynamic: list[tuple[str, Flags]]) -> Eligibility:
        answers, prefills, removed = base.answers, base.prefills, list(base.removed)
        emptied_by = base.emptied_by
        for rule, out in dynamic:
            gone = out & (answers | prefills)
            if gone.any():
                removed.append((rule, gone))
            answers = answers & ~out
            prefills = prefills & ~out
            if not answers.any():
                emptied_by = emptied_by or rule
                break
        return Eligibility(
            answers=answers,
            prefills=prefills,
            removed=tuple(removed),
            forbidden=base.forbidden,
            rows=answers.nonzero()[0],
            has_prefills=bool(prefills.any()),
            one_place=base.one_place,
            gate=base.gate,
            emptied_by=emptied_by,
        )

    def base_of(self, residency: Residency, model: str) -> Eligibility:
        """What the document alone leaves."""
        key = (residency, model)
        found = self._base.get(key)
        if found is None:
            if len(self._base) >= _REMEMBERED:
                self._base.clear()
            found = self._base[key] = self._compute_base(residency, model)
        return found

    def _compute_base(self, residency: Residency, model: str) -> Eligibility:
        table, spec = self._table, self._models.get(model)
        able: Flags = table.answers | table.is_prefill
        removed: list[tuple[str, Flags]] = []
        emptied_by = "" if table.answers.any() else "role" if len(table) else "no-endpoints"
        for rule, keep in (
            ("jurisdiction", _among(table.jurisdictions, residency.jurisdictions)),
            ("operator", _among(self._operators, residency.operators)),
            ("capability", self._capable(spec)),
            ("adapter", self._adapted(spec)),
            ("state", table.is_ready),
        ):
            if emptied_by:
                break
            gone = able & ~keep
            able = able & keep
            if gone.any():
                removed.append((rule, gone))
            if not (table.answers & able).any():
                emptied_by = rule
        answers = table.answers & able
        prefills = table.is_prefill & able
        return Eligibility(
            answers=answers,
            prefills=prefills,
            removed=tuple(removed),
            forbidden=emptied_by in RESIDENCY_RULES,
            rows=answers.nonzero()[0],
            has_prefills=bool(prefills.any()),
            one_place=residency.one_place,
            gate=(answers.tobytes(), prefills.tobytes()),
            emptied_by=emptied_by,
        )

    def _capable(self, model: ModelSpec | None) -> Flags:
        needed = set() if model is None else set(model.requires)
        return self._flags(
            [needed <= set(instance.spec.capabilities) for instance in self._table.instances]
        )

    def _adapted(self, model: ModelSpec | None) -> Flags:
        """An endpoint that lists no adapters serves all of the pool's."""
        if model is None or model.adapter_of is None:
            return np.ones(len(self._table), dtype=np.bool_)
        listed = [instance.spec.adapters for instance in self._table.instances]
        return self._flags([not names or model.name in names for names in listed])

    def _flags(self, values: list[bool]) -> Flags:
        return np.array(values, dtype=np.bool_)

    def _too_short(self, tokens: int, base: Eligibility) -> list[tuple[str, Flags]]:
        table = self._table
        if tokens <= table.shortest_model_len or not len(base.rows):
            return []
        # The count is an estimate: the longest endpoints stay, their engine knows exactly.
        longest = table.max_model_len[base.rows].max()
        short = (table.max_model_len < tokens) & (table.max_model_len < longest)
        return [("context-length", short)]

    def _broken(self, now: float) -> Flags:
        table = self._table
        # A breaker whose time is over lets one request through to find out.
        closed = np.isneginf(table.open_until)
        probe = (table.open_until <= now) & (table.requests == 0)
        broken: Flags = ~(closed | probe)
        return broken

    def _named(self, names: frozenset[str] | tuple[str, ...]) -> Flags:
        out = np.zeros(len(self._table), dtype=np.bool_)
        out[[self._table.row_of[name] for name in names if name in self._table.row_of]] = True
        return out

    def _unforced(self, names: tuple[str, ...]) -> Flags:
        """Everything else; naming no prefill endpoint leaves the choice of it open, and so on."""
        table, named = self._table, self._named(names)
        out = ~named
        is_known = [name in table.row_of for name in names]
        if not (named & table.is_prefill).any():
            out = out & ~table.is_prefill
        elif all(is_known) and not (named & table.answers).any():
            out = out & ~table.answers
        return out


def _among(values: tuple[str | None, ...], allowed: tuple[str, ...] | None) -> Flags:
    return np.array([allowed is None or value in allowed for value in values], dtype=np.bool_)
