"""One decision as a page shows it: candidates with bars, what was filtered, replay side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import translation
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from controlplane.console import format as fmt
from controlplane.console import svg
from routing.explain.explanation import degraded_in_words, rule_in_words

Record = Mapping[str, Any]

TERMS: Mapping[str, tuple[str, object]] = {
    "wait": ("t", gettext_lazy("wait")),
    "prefill": ("p", gettext_lazy("prefill")),
    "load": ("m", gettext_lazy("KV load")),
    "first_step": ("p", gettext_lazy("first step")),
    "transfer": ("k", gettext_lazy("transfer")),
    "warm_up": ("b", gettext_lazy("warm-up")),
    "decode": ("d", gettext_lazy("decode")),
    "harm": ("u", gettext_lazy("harm to others")),
    "capacity": ("i", gettext_lazy("capacity")),
    "slo": ("v", gettext_lazy("SLO penalty")),
    "money": ("x", gettext_lazy("money")),
}
"""Pattern and word of each term; the first step is drawn with the prefill that it ends."""
_SHOWN_SECONDS = 0.0005


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """A candidate in the order of its price."""

    rank: int
    endpoint: str
    prefill: str
    held: int | None
    bar: SafeString
    terms: Sequence[float | None]
    total: float | None
    behind: float | None
    age: float | None
    chosen: bool


@dataclass(frozen=True, slots=True)
class Candidates:
    """The table: which terms have a column, which are 0 everywhere."""

    rows: Sequence[CandidateRow]
    columns: Sequence[tuple[str, object]]
    """Pattern and word of the shown terms."""
    zero: str
    """Words of the terms that are 0 for all, joined."""
    more: int
    scorers: Sequence[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact of the recorded and of the replayed decision."""

    name: object
    before: str
    after: str

    @property
    def differs(self) -> bool:
        """True if the replay came to something else."""
        return self.before != self.after


def candidates_of(record: Record) -> Candidates:
    """The candidates of a record with their terms in seconds."""
    rows = list(record.get("candidates") or ())
    shown = [name for name in TERMS if any(_seconds(row, name) > _SHOWN_SECONDS for row in rows)]
    totals = [total for row in rows if (total := _total(row)) is not None]
    most, best = max(totals, default=0.0), min(totals, default=0.0)
    chosen = record.get("destination")
    return Candidates(
        rows=[
            CandidateRow(
                rank=rank,
                endpoint=row["endpoint"],
                prefill=row.get("prefill") or "",
                held=row.get("hit_tokens"),
                bar=_bar(row, most) if _total(row) is not None else SafeString(""),
                terms=[_seconds(row, name) for name in shown],
                total=_total(row),
                behind=None if (total := _total(row)) is None else total - best,
                age=row.get("signal_age_seconds"),
                chosen=row["endpoint"] == chosen,
            )
            for rank, row in enumerate(rows, start=1)
        ],
        columns=[TERMS[name] for name in shown],
        zero=", ".join(str(TERMS[name][1]) for name in TERMS if name not in shown),
        more=max(0, int(record.get("candidate_count") or 0) - len(rows)),
        scorers=_scorers(rows),
    )


def legend_of(candidates: Candidates) -> list[tuple[str, object]]:
    """Pattern and word, each pattern once."""
    found: dict[str, object] = {}
    for pattern, word in candidates.columns:
        found.setdefault(pattern, word)
    return list(found.items())


def filtered_of(record: Record) -> list[tuple[str, str, int, list[str]]]:
    """Rule, its words, how many it removed, and the names that are listed."""
    names: dict[str, list[str]] = {}
    for row in record.get("rejected") or ():
        names.setdefault(str(row.get("rule")), []).append(str(row.get("endpoint")))
    language = _language()
    return [
        (rule, rule_in_words(rule, count, language=language), count, names.get(rule, []))
        for rule, count in (record.get("removed") or {}).items()
    ]


def notes_of(record: Record) -> list[str]:
    """What the decision, or its replay, had to do without."""
    told = [*(record.get("degraded") or ()), *(record.get("unknown") or ())]
    return [degraded_in_words(str(word), language=_language()) for word in told]


def differences(before: Record, after: Record) -> list[Difference]:
    """The facts of two decisions side by side."""
    return [
        Difference(_("Policy"), str(before.get("policy")), str(after.get("policy"))),
        Difference(_("Document"), _version(before), _version(after)),
        Difference(_("Destination"), _where(before), _where(after)),
        Difference(_("Refusal"), _refusal(before), _refusal(after)),
        Difference(_("Held prompt tokens"), *_both(before, after, "hit_tokens", 0)),
        Difference(_("First token expected s"), *_both(before, after, "ttft_seconds", 2)),
        Difference(_("Price of the destination s"), _price(before), _price(after)),
        Difference(
            _("Runner-up"), str(before.get("runner_up") or "-"), str(after.get("runner_up") or "-")
        ),
        Difference(
            _("Margin s"),
            fmt.number(before.get("margin_seconds"), 2),
            fmt.number(after.get("margin_seconds"), 2),
        ),
    ]


def _language() -> Any:
    return "ko" if (translation.get_language() or "en").startswith("ko") else "en"


def _seconds(row: Record, name: str) -> float:
    value = (row.get("terms") or {}).get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _total(row: Record) -> float | None:
    value = (row.get("terms") or {}).get("total")
    return float(value) if isinstance(value, int | float) else None


def _bar(row: Record, most: float) -> SafeString:
    told = [
        _("%(term)s %(seconds)s s") % {"term": word, "seconds": fmt.number(_seconds(row, name), 2)}
        for name, (_pattern, word) in TERMS.items()
        if _seconds(row, name) > _SHOWN_SECONDS
    ]
    segments = [
        svg.Segment(pattern, _seconds(row, name), str(word))
        for name, (pattern, word) in _drawn().items()
    ]
    return svg.bar(segments, total=most, label=f"{row['endpoint']}: {', '.join(told)}", height=16)


def _drawn() -> Mapping[str, tuple[str, object]]:
    """Terms in the order of the bar: the first step right after the prefill."""
    order = ["wait", "load", "prefill", "first_step", *list(TERMS)[4:]]
    return {name: TERMS[name] for name in order}


def _scorers(rows: Sequence[Record]) -> list[tuple[str, float]]:
    scores = rows[0].get("scores") if rows else None
    return [(name, told["weight"]) for name, told in (scores or {}).items()]


def _where(record: Record) -> str:
    if not record.get("destination"):
        return "-"
    prefill = record.get("prefill")
    return f"{prefill} → {record['destination']}" if prefill else str(record["destination"])


def _version(record: Record) -> str:
    return str(record.get("document_version") or "-")


def _refusal(record: Record) -> str:
    refusal = record.get("refusal")
    return f"{refusal.get('status')} {refusal.get('code')}" if refusal else "-"


def _both(before: Record, after: Record, name: str, digits: int) -> tuple[str, str]:
    values = [
        (record.get("predicted") or {}).get(name) if record.get("destination") else None
        for record in (before, after)
    ]
    return fmt.number(values[0], digits), fmt.number(values[1], digits)


def _price(record: Record) -> str:
    rows = record.get("candidates") or ()
    found = [_total(row) for row in rows if row.get("endpoint") == record.get("destination")]
    return fmt.number(found[0] if found else None, 2)
