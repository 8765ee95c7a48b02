"""Reasons of advice as sentences, English and Korean. Total: an unknown code shows itself."""

from collections.abc import Mapping
from typing import Literal

from routing.planner.advice import Reason

Language = Literal["en", "ko"]

ENGLISH: Mapping[str, str] = {
    "fit-refused": "{detail}",
    "fit-unknown-figures": "Figures of {detail} are not known.",
    "fit-memory": "{detail} needs {needed_gb} GB with room for eight sequences; {there_gb} GB are"
    " there.",
    "nothing-fits": "No accelerator of the fleet can serve this model.",
    "split-only": "Only this split can answer.",
    "split-wins": "The split keeps {goodput} good requests/s, {gain} against {other} without it.",
    "split-wins-over-nothing": "The split keeps {goodput} good requests/s; without it no request is"
    " answered within the targets.",
    "meets-target": "{goodput} of {offered} requests/s meet the targets, {share} of what is"
    " offered.",
    "misses-target": "{goodput} of {offered} requests/s meet the targets, {share} of what is"
    " offered; more accelerators or less load are needed.",
    "spare": "The load is {share} of what these accelerators could take by the queueing estimate,"
    " {bound} requests/s.",
    "both-wins": "Both phases on every engine give {gain} goodput against the roles of today.",
    "both-wins-over-nothing": "Both phases on every engine keep {goodput} good requests/s; the"
    " roles of today answer no request within the targets.",
    "split-not-allowed": "The pool is unified, so no engine may do one phase only.",
    "split-impossible": "No split of these accelerators keeps the targets at any rate.",
    "do-not-split": "Do not split: the best split keeps {goodput} good requests/s, {gain} against"
    " {other}; at least +10 % over {most} would be needed, which is as much as the other may keep"
    " at rates that were not tried.",
    "do-not-split-nothing": "Do not split: without it no request is answered within the targets at"
    " the rates that were tried, the lowest {most} requests/s, and the best split keeps {goodput};"
    " at least +10 % over {most} would be needed.",
    "hand-over-cost": "Handing over the KV of {tokens} tokens through host memory takes {seconds} s"
    " of a link.",
    "less-goodput": "{goodput} good requests/s, {gain} against {other} of the advice.",
    "no-clear-gain": "{goodput} good requests/s, {gain} against {other} of the advice: too little"
    " to move {moves} accelerators.",
    "as-nothing": "{goodput} good requests/s; the advice answers no request within the targets"
    " at the rates that were tried.",
    "ttft-compared": "TTFT p90 {ours} s against {theirs} s.",
    "tpot-compared": "TPOT p90 {ours} s against {theirs} s.",
    "pair-share": "{share} of the answers had their prompt computed elsewhere.",
    "limited-by-prefill": "Its prefill engines are the limit.",
    "limited-by-decode": "Its decode engines are the limit.",
}

KOREAN: Mapping[str, str] = {
    "fit-refused": "{detail}",
    "fit-unknown-figures": "사양을 알 수 없습니다: {detail}.",
    "fit-memory": "메모리 부족: {detail}. 시퀀스 8개를 담으려면 {needed_gb} GB가 필요하고"
    " {there_gb} GB가 있습니다.",
    "nothing-fits": "이 모델을 서비스할 수 있는 가속기가 없습니다.",
    "split-only": "이 분리 배치만 응답할 수 있습니다.",
    "split-wins": "분리하면 목표를 지키는 요청이 초당 {goodput}건이고, 분리하지 않은 {other}건 대비"
    " {gain}입니다.",
    "split-wins-over-nothing": "분리하면 목표를 지키는 요청이 초당 {goodput}건이고, 분리하지 않으면"
    " 목표를 지키는 요청이 없습니다.",
    "meets-target": "초당 {offered}건 중 {goodput}건이 목표를 지킵니다. 비율: {share}.",
    "misses-target": "초당 {offered}건 중 {goodput}건만 목표를 지킵니다. 비율: {share}. 가속기를"
    " 늘리거나 부하를 줄여야 합니다.",
    "spare": "부하는 대기 행렬 추정 용량(초당 {bound}건) 대비 {share}입니다.",
    "both-wins": "모든 엔진이 두 단계를 함께 하면 현재 역할 대비 굿풋이 {gain}입니다.",
    "both-wins-over-nothing": "모든 엔진이 두 단계를 함께 하면 목표를 지키는 요청이 초당"
    " {goodput}건이고, 현재 역할로는 목표를 지키는 요청이 없습니다.",
    "split-not-allowed": "통합 풀이므로 한 단계만 하는 엔진을 둘 수 없습니다.",
    "split-impossible": "어떤 분리 배치도 목표를 지키지 못합니다.",
    "do-not-split": "분리하지 마십시오: 가장 좋은 분리 배치가 초당 {goodput}건으로, {other}건 대비"
    " {gain}입니다. 시도하지 않은 요청률까지 고려하면 상대는 최대 {most}건이므로, 그보다 +10 %"
    " 이상이어야 합니다.",
    "do-not-split-nothing": "분리하지 마십시오: 분리하지 않으면 시도한 요청률(최저 초당 {most}건)"
    "에서 목표를 지키는 요청이 없고, 가장 좋은 분리 배치는 초당 {goodput}건입니다. {most}건보다"
    " +10 % 이상이어야 합니다.",
    "hand-over-cost": "토큰 {tokens}개의 KV를 호스트 메모리로 넘기는 데 링크 시간 {seconds}초가"
    " 듭니다.",
    "less-goodput": "목표를 지키는 요청 초당 {goodput}건, 조언의 {other}건 대비 {gain}.",
    "no-clear-gain": "목표를 지키는 요청 초당 {goodput}건, 조언의 {other}건 대비 {gain}. 가속기"
    " {moves}개를 옮기기에는 이득이 작습니다.",
    "as-nothing": "목표를 지키는 요청 초당 {goodput}건. 조언한 배치는 시도한 요청률에서 목표를"
    " 지키는 요청이 없습니다.",
    "ttft-compared": "TTFT p90: {ours}초, 비교 {theirs}초.",
    "tpot-compared": "TPOT p90: {ours}초, 비교 {theirs}초.",
    "pair-share": "프롬프트를 다른 엔진이 계산한 응답의 비율: {share}.",
    "limited-by-prefill": "프리필 엔진이 한계입니다.",
    "limited-by-decode": "디코드 엔진이 한계입니다.",
}

_WORDS: Mapping[str, Mapping[str, str]] = {"en": ENGLISH, "ko": KOREAN}
_PERCENT = {"share", "gain"}
_FORMATS: Mapping[str, str] = {
    "share": "{:.0f} %", "gain": "{:+.0f} %", "tokens": "{:,.0f}", "moves": "{:.0f}",
    "groups": "{:.0f}", "ours": "{:.3f}", "theirs": "{:.3f}", "seconds": "{:.2f}",
}  # fmt: skip
"""By the name of the number; others have one decimal."""


def sentence(reason: Reason, language: Language = "en") -> str:
    """The reason in words."""
    text = _WORDS[language].get(reason.code)
    if text is None:
        return reason.code
    known = {name: _number(name, value) for name, value in reason.numbers.items()}
    return text.format_map(_Numbers(known))


class _Numbers(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "?"


def _number(name: str, value: float | str | None) -> str:
    if value is None:
        return "?"
    if isinstance(value, str):
        return value
    return _FORMATS.get(name, "{:.1f}").format(100 * value if name in _PERCENT else value)
