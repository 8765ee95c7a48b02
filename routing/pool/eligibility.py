"""Hard filters: which endpoints may take part in a request. No score or fallback overrules them.

Rules in order, each named in the decision record: `role` (a prefill endpoint never answers),
`state` (draining takes nothing), `jurisdiction` (an endpoint without one is out), `context-length`,
`breaker`, `excluded` (the caller tried it already).
"""

from dataclasses import dataclass

import numpy as np

from routing.core.pricing import Rows
from routing.core.table import EndpointTable, Flags


@dataclass(frozen=True, slots=True)
class Eligibility:
    """Masks over the table's rows."""

    answers: Flags
    """May be the destination."""
    prefills: Flags
    """May compute a prompt for a destination."""
    removed: tuple[tuple[str, Flags], ...]
    forbidden: bool
    """Jurisdictions alone removed every endpoint that could have answered."""
    rows: Rows
    """The rows of `answers`."""
    has_prefills: bool


def _eligibility(
    answers: Flags, prefills: Flags, removed: tuple[tuple[str, Flags], ...], *, forbidden: bool
) -> Eligibility:
    return Eligibility(
        answers, prefills, removed, forbidden, answers.nonzero()[0], bool(prefills.any())
    )


class EligibilityRules:
    """The masks that depend on the document only are computed once per set of jurisdictions."""

    def __init__(self, table: EndpointTable) -> None:
        self._table = table
        self._allowed: dict[tuple[str, ...] | None, Flags] = {}
        self._base: dict[tuple[str, ...] | None, Eligibility] = {}

    def of(
        self,
        jurisdictions: tuple[str, ...] | None,
        *,
        prompt_tokens: int,
        exclude: frozenset[str],
        has_breakers: bool,
        now: float,
    ) -> Eligibility:
        """Endpoints that may serve such a request at this moment."""
        base = self._base_of(jurisdictions)
        dynamic = self._too_short(prompt_tokens)
        if has_breakers:
            dynamic.append(("breaker", self._broken(now)))
        if exclude:
            dynamic.append(("excluded", self._excluded(exclude)))
        if not dynamic:
            return base
        answers, prefills, removed = base.answers, base.prefills, list(base.removed)
        for rule, out in dynamic:
            removed.append((rule, out & (answers | prefills)))
            answers = answers & ~out
            prefills = prefills & ~out
        return _eligibility(answers, prefills, tuple(removed), forbidden=base.forbidden)

    def _base_of(self, jurisdictions: tuple[str, ...] | None) -> Eligibility:
        found = self._base.get(jurisdictions)
        if found is None:
            if len(self._base) > 256:
                self._base.clear()
            found = self._base[jurisdictions] = self._compute_base(jurisdictions)
        return found

    def _compute_base(self, jurisdictions: tuple[str, ...] | None) -> Eligibility:
        table = self._table
        allowed = np.array(
            [jurisdictions is None or place in jurisdictions for place in table.jurisdictions],
            dtype=np.bool_,
        )
        ready = table.is_ready
        removed = (
            ("role", ~table.answers & ~table.is_prefill),
            ("state", ~ready),
            ("jurisdiction", ready & ~allowed),
        )
        able = table.answers & ready
        return _eligibility(
            answers=able & allowed,
            prefills=table.is_prefill & ready & allowed,
            removed=tuple((rule, rows) for rule, rows in removed if rows.any()),
            forbidden=bool(able.any() and not (able & allowed).any()),
        )

    def _too_short(self, prompt_tokens: int) -> list[tuple[str, Flags]]:
        table = self._table
        if prompt_tokens <= table.shortest_model_len:
            return []
        # The count is an estimate: the longest endpoints stay, their engine knows exactly.
        longest = table.max_model_len.max()
        short = (table.max_model_len < prompt_tokens) & (table.max_model_len < longest)
        return [("context-length", short)]

    def _broken(self, now: float) -> Flags:
        table = self._table
        # A breaker whose time is over lets one request through to find out.
        closed = np.isneginf(table.open_until)
        probe = (table.open_until <= now) & (table.requests == 0)
        broken: Flags = ~(closed | probe)
        return broken

    def _excluded(self, names: frozenset[str]) -> Flags:
        out = np.zeros(len(self._table), dtype=np.bool_)
        out[[self._table.row_of[name] for name in names if name in self._table.row_of]] = True
        return out
