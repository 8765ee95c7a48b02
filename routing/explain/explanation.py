"""A decision record as a sentence and further points. Pure, total: any record gets an answer."""

import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Literal, get_args

import msgspec

from routing.explain import english, korean
from routing.explain.reading import readable
from routing.explain.reasons import Json, candidate, reason_of

Language = Literal["en", "ko"]
LANGUAGES: tuple[str, ...] = get_args(Language)
_WORDS: Mapping[str, ModuleType] = {"en": english, "ko": korean}
_SECONDS = {
    "seconds", "total", "ours", "theirs", "gain", "tpot", "rival_tpot", "ttft", "transfer", "age",
    "regret", "retry_after",
}  # fmt: skip
FEW_TOKENS = 256
"""Fewer uncached tokens than this are not worth a hand-over, whatever it costs."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why, in words."""

    language: Language
    kind: str
    """Key of the sentence, the same in every language."""
    sentence: str
    points: tuple[str, ...]


def explain(record: Json, *, language: Language = "en") -> Explanation:
    """Say why a decision fell as it did; `record` is what `routing.core.record` writes.

    Anything else is explained as far as it can be read.
    """
    record, words = readable(record), _WORDS[language]
    reason = reason_of(record)
    kind = reason.kind
    if kind not in words.SENTENCES:
        kind = "refused" if kind.startswith("refused-") else "by-policy"
    return Explanation(
        language=language,
        kind=reason.kind,
        sentence=_said(words, words.SENTENCES[kind], reason.facts),
        points=tuple(_points(words, record)),
    )


def rule_in_words(rule: str, count: int, *, language: Language = "en") -> str:
    """A filter rule with how many endpoints it removed."""
    words = _WORDS[language]
    template: str = words.RULES.get(rule, words.OTHER_RULE)
    return template.format(rule=rule, count=count)


def degraded_in_words(word: str, *, language: Language = "en") -> str:
    """What a decision had to do without."""
    words = _WORDS[language]
    template: str = words.DEGRADED.get(word, words.OTHER_DEGRADED)
    return template.format(word=word)


def seconds_in_words(value: float | None, *, language: Language = "en") -> str:
    """Seconds with as many digits as are worth reading; "-" when unknown."""
    if value is None or not math.isfinite(value):
        return "-"
    template: str = _WORDS[language].SECONDS
    return template.format(value=f"{value:,.{_digits(abs(value))}f}")


def _digits(value: float) -> int:
    if value >= 100 or value == 0:
        return 0
    if value >= 10:
        return 1
    return 2 if value >= 0.0995 else 3


def _said(words: ModuleType, template: str, facts: Mapping[str, Any]) -> str:
    return template.format(**{name: _fact(words, name, value) for name, value in facts.items()})


def _fact(words: ModuleType, name: str, value: Any) -> str:
    if name in _SECONDS:
        language: Language = "ko" if words is korean else "en"
        return seconds_in_words(value, language=language)
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}"
    is_count = isinstance(value, int) and name != "status"
    return f"{value:,}" if is_count else str(value)


def _points(words: ModuleType, record: Json) -> list[str]:
    """What else is worth knowing, most important first."""
    found = [
        *_pair(words, record),
        *_expected(words, record),
        *_outcome(words, record),
        *_shadows(words, record),
        *_filtered(words, record),
        *_order(words, record),
    ]
    for word in (*(record.get("degraded") or ()), *(record.get("unknown") or ())):
        template = words.DEGRADED.get(word, words.OTHER_DEGRADED)
        found.append(template.format(word=word))
    return found


def _point(words: ModuleType, key: str, **facts: Any) -> str:
    return _said(words, words.POINTS[key], facts)


def _pair(words: ModuleType, record: Json) -> list[str]:
    winner = candidate(record, record.get("destination")) or {}
    other = winner.get("other_way")
    if record.get("prefill"):
        return _through_pair(words, record, other)
    return _at_home(words, record, other) if other else []


def _through_pair(words: ModuleType, record: Json, other: Json | None) -> list[str]:
    names = {"destination": record.get("destination"), "prefill": record["prefill"]}
    moved = (record.get("predicted") or {}).get("transfer_seconds")
    kind = "pair" if moved is not None else "pair-unpriced"
    found = [_point(words, kind, **names, transfer=moved)]
    if other and other.get("gain_seconds", 0) > 0:
        found.append(_point(words, "pair-gain", **names, gain=other["gain_seconds"]))
    return found


def _at_home(words: ModuleType, record: Json, other: Json) -> list[str]:
    uncached = (record.get("predicted") or {}).get("uncached_tokens")
    if uncached is not None and uncached < FEW_TOKENS:
        return [_point(words, "local-short", uncached=uncached)]
    if other.get("gain_seconds", 0) <= 0:
        return []
    names = {"destination": record.get("destination"), "prefill": other.get("prefill")}
    return [_point(words, "local-gain", **names, gain=other["gain_seconds"])]


def _expected(words: ModuleType, record: Json) -> list[str]:
    told = record.get("predicted") or {}
    if record.get("destination") is None or told.get("ttft_seconds") is None:
        return []
    return [
        _point(
            words,
            "expected",
            ttft=told["ttft_seconds"],
            tpot=told.get("tpot_seconds"),
            output=told.get("output_tokens"),
        )
    ]


def _outcome(words: ModuleType, record: Json) -> list[str]:
    told = record.get("outcome") or {}
    found = []
    if told.get("ttft_seconds") is not None:
        found.append(_point(words, "real", ttft=told["ttft_seconds"]))
    if told.get("cached_tokens") is not None:
        hit = (record.get("predicted") or {}).get("hit_tokens")
        found.append(_point(words, "real-cached", cached=told["cached_tokens"], hit=hit))
    if told and told.get("outcome") not in ("ok", "refused"):
        facts = {"outcome": told.get("outcome"), "status": told.get("status")}
        found.append(_point(words, "failed", **facts))
    return found


def _shadows(words: ModuleType, record: Json) -> list[str]:
    found = []
    for told in record.get("shadows") or ():
        regret, policy = told.get("regret_seconds"), told.get("policy")
        if told.get("agrees"):
            found.append(_point(words, "shadow-same", policy=policy))
        elif regret is not None:
            kind = "shadow-other" if regret >= 0 else "shadow-better"
            choice = told.get("destination")
            found.append(_point(words, kind, policy=policy, choice=choice, regret=abs(regret)))
    return found


def _filtered(words: ModuleType, record: Json) -> list[str]:
    removed = record.get("removed") or {}
    rules = [
        words.RULES.get(rule, words.OTHER_RULE).format(rule=rule, count=count)
        for rule, count in removed.items()
        if count
    ]
    return [_point(words, "filtered", rules=words.LIST.join(rules))] if rules else []


def _order(words: ModuleType, record: Json) -> list[str]:
    found = []
    if record.get("fallbacks"):
        found.append(_point(words, "fallbacks", names=words.LIST.join(record["fallbacks"])))
    winner = candidate(record, record.get("destination")) or {}
    age = winner.get("signal_age_seconds")
    if age is not None:
        found.append(_point(words, "age", destination=record["destination"], age=age))
    listed = len(record.get("candidates") or ())
    more = record.get("candidate_count", 0) - listed
    if listed and more > 0:
        found.append(_point(words, "left-out", count=more))
    retry = (record.get("refusal") or {}).get("retry_after_seconds")
    if retry is not None:
        found.append(_point(words, "retry", retry_after=retry))
    return found
