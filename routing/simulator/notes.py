"""What to know of the inputs of a run, in English and Korean: what was cut, stated, or left out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from routing.simulator.report.messages import LANGUAGES, Language


@dataclass(frozen=True, slots=True)
class Note:
    """One sentence; `names` fill its gaps."""

    key: str
    names: Mapping[str, object] = field(default_factory=dict)


_SENTENCES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "cut-prompts": (
            "Prompts that were cut to {tokens} tokens: {count}.",
            "토큰 {tokens}개로 자른 프롬프트: {count}개.",
        ),
        "stated-share": (
            "Prompts share {share} of their tokens: this is stated, not recorded.",
            "프롬프트가 공유하는 토큰 비율: {share}. 기록이 아니라 지정한 값입니다.",
        ),
        "retried": (
            "Attempts that were retried elsewhere and are left out: {count}.",
            "다른 곳에서 다시 시도되어 제외한 시도: {count}건.",
        ),
        "no-counts": (
            "Requests without token counts that are left out: {count}.",
            "토큰 수가 없어 제외한 요청: {count}건.",
        ),
        "modelled-sharing": (
            "What prompts share is modelled from cached tokens and block keys.",
            "프롬프트가 공유하는 부분은 캐시된 토큰과 블록 키로 추정한 것입니다.",
        ),
        "list-prices": (
            "Prices are third parties' list prices or, where nobody lists one, estimates"
            " ('prices.yaml' says which); state your own with 'currency'.",
            "가격은 제3자의 공시 가격이며, 공시 가격이 없으면 추정치입니다('prices.yaml'에 구분)."
            " 실제 가격은 'currency'와 함께 지정하십시오.",
        ),
        "no-list-price": (
            "There is no cost, since nobody lists a price of: {names}.",
            "공시 가격이 없어 비용을 계산하지 않습니다. 해당 가속기: {names}.",
        ),
    }
)


def told(note: Note, language: Language) -> str:
    """The sentence."""
    return _SENTENCES[note.key][LANGUAGES.index(language)].format(**note.names)
