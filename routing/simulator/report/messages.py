"""Words of the reports in English and Korean. One entry per sentence; names go into braces."""

from collections.abc import Mapping
from typing import Literal

Language = Literal["en", "ko"]
LANGUAGES: tuple[Language, ...] = ("en", "ko")

_WORDS: Mapping[str, tuple[str, str]] = {
    "no-data": ("No data.", "데이터 없음."),
    "numbers": ("The same as numbers", "같은 내용을 숫자로 보기"),
    "rate": ("requests per second", "초당 요청 수"),
    "throughput": ("Throughput", "처리량"),
    "output-tokens-per-s": ("output tokens per second", "초당 출력 토큰 수"),
    "goodput": ("Goodput", "굿풋"),
    "good-share": ("share within the targets", "목표 이내 비율"),
    "good-per-s": ("requests per second within the targets", "목표 이내 초당 요청 수"),
    "ttft-p50": ("Time to the first token, median, s", "첫 토큰까지의 시간, 중앙값, 초"),
    "ttft-p90": (
        "Time to the first token, 90th percentile, s", "첫 토큰까지의 시간, 90번째 백분위수, 초"
    ),
    "seconds-log": ("seconds, each step a factor of ten", "초, 눈금마다 10배"),
    "policy": ("policy", "정책"),
    "stage": ("stage", "단계"),
    "sent": ("sent", "보냄"),
    "answered": ("answered", "응답함"),
    "failed": ("not answered", "응답 없음"),
    "hit-rate": ("prefix hits", "프리픽스 적중률"),
    "cost-per-million": (
        "{currency} per million output tokens", "출력 토큰 백만 개당 {currency}"
    ),
    "energy": ("Wh (modelled)", "Wh (모형 추정)"),
    "endpoint": ("endpoint", "엔드포인트"),
    "role": ("role", "역할"),
    "prefill-s": ("prefill s", "프리필 초"),
    "decode-s": ("decode s", "디코드 초"),
    "idle-s": ("idle s", "유휴 초"),
    "down-s": ("down s", "중단 초"),
    "output-tokens": ("output tokens", "출력 토큰"),
    "simulated": (
        "All numbers are simulated: the routing code is the one of production, the engines are"
        " models. Costs and energy are modelled from stated or listed prices and draws, some of"
        " them estimates.",
        "모든 수치는 시뮬레이션 추정입니다. 라우팅 코드는 운영 환경과 같고, 엔진은 모형입니다."
        " 비용과 에너지는 지정되거나 공시된 가격과 소비 전력(일부는 추정치)으로 계산한"
        " 모형 값입니다.",
    ),
    "published": (
        "Hollow points are published measurements of others.",
        "속이 빈 점은 다른 곳에서 공개한 실측값입니다.",
    ),
    "published-service": ("Kubernetes Service, published", "쿠버네티스 서비스, 공개 실측"),
    "published-llm-d": ("llm-d, published", "llm-d, 공개 실측"),
    "numbers-of": ("Numbers of each stage", "단계별 수치"),
    "replicas-of": (
        "Endpoints in the last stage: {policy}", "마지막 단계의 엔드포인트. 정책: {policy}"
    ),
    "drawn-few": (
        "Plots show at most six policies; the tables have all.",
        "그래프에는 정책이 최대 여섯 개까지 나오며, 표에는 모두 있습니다.",
    ),
    "race-title": ("Routing policies against each other", "라우팅 정책 비교"),
    "race-about": (
        "Every policy met the same requests: {seeds} runs of each case, differences by pairs of"
        " equal seeds with 95 % intervals. Goodput counts requests answered within the targets of"
        " the case.",
        "모든 정책이 같은 요청을 받았습니다. 사례마다 {seeds}회 실행했고, 차이는 같은 시드끼리"
        " 비교해 95 % 구간과 함께 표시합니다. 굿풋은 사례의 목표 안에 응답한 요청만 셉니다.",
    ),
    "race-quick": (
        "This was a quick race: it shows that everything runs, and says nothing about policies.",
        "짧은 실행입니다. 모두 동작하는지만 보여 주며 정책의 우열은 말해 주지 않습니다.",
    ),
    "demands": ("What is demanded of consort", "consort에 대한 요구 사항"),
    "demands-met": (
        "Of {all} demands {met} are met, {missed} are missed, {open} were not judged.",
        "요구 사항 {all}개 중 충족 {met}개, 미달 {missed}개, 판정하지 않음 {open}개.",
    ),
    "result": ("result", "결과"),
    "met": ("met", "충족"),
    "missed": ("missed", "미달"),
    "open-not-run": ("not judged: did not run", "판정하지 않음: 실행되지 않음"),
    "open-peers-not-run": (
        "not judged: not every peer ran", "판정하지 않음: 비교 대상이 모두 실행되지는 않음"
    ),
    "open-nothing-served": (
        "not judged: nobody served anything", "판정하지 않음: 모두 처리한 요청 없음"
    ),
    "open-quick": ("not judged: stages too short", "판정하지 않음: 구간이 너무 짧음"),
    "demand": ("demand", "요구 사항"),
    "best-goodput": (
        "best goodput, since speeds differ", "속도가 서로 다르므로 가장 높은 굿풋"
    ),
    "near-best-goodput": (
        "goodput within 2 % of the best", "가장 높은 굿풋과 2 % 이내"
    ),
    "no-worse-than-random": (
        "never worse than random choice by more than 1 %", "무작위 선택보다 1 % 넘게 나쁘지 않음"
    ),
    "throughput-over-llm-d": (
        "throughput against llm-d's best setting", "llm-d의 가장 나은 설정 대비 처리량"
    ),
    "throughput-over-service": (
        "throughput against a Kubernetes Service", "쿠버네티스 서비스 대비 처리량"
    ),
    "goodput-over-llm-d": (
        "goodput against llm-d's best setting", "llm-d의 가장 나은 설정 대비 굿풋"
    ),
    "row": ("row", "행"),
    "figure": ("figure", "값"),
    "at-least": ("at least", "최소"),
    "against": ("against", "비교 대상"),
    "matrix": ("Goodput of all policies", "모든 정책의 굿풋"),
    "matrix-about": (
        "Requests per second within the targets.", "목표 이내 초당 요청 수입니다."
    ),
    "behind": ("behind consort", "consort와의 차이"),
    "interval": ("95 % interval", "95 % 구간"),
    "tpot-p50": ("Time per output token, median, s", "출력 토큰당 시간, 중앙값, 초"),
    "splits": ("Prefill and decode on different vendors", "서로 다른 벤더의 프리필과 디코드"),
    "splits-about": (
        "The same twenty endpoints in different roles, under consort. KV moves through host memory."
        " A split pays from 10 % more goodput than all endpoints doing both, where at least half of"
        " the requests meet the targets.",
        "같은 엔드포인트 20개에 역할만 다르게 준 결과이며 정책은 consort입니다. KV는 호스트"
        " 메모리를 거쳐 옮겨집니다. 굿풋이 모두 겸용일 때보다 10 % 이상 높고 요청의 절반 이상이"
        " 목표를 충족해야 나눌 가치가 있습니다.",
    ),
    "split": ("split", "역할 분리"),
    "against-both": ("against all both", "모두 겸용 대비"),
    "pair-share": ("share of pairs", "쌍 처리 비율"),
    "best-split": ("best split", "가장 나은 분리"),
    "advice": ("advice", "권고"),
    "pays": ("split", "분리"),
    "pays-not": ("do not split", "분리하지 않음"),
    "workload": ("workload", "워크로드"),
    "shown-range": (
        "{name}: {first} at the lowest rate, {last} at the highest.",
        "{name}: 가장 낮은 속도에서 {first}, 가장 높은 속도에서 {last}.",
    ),
}  # fmt: skip


def say(key: str, language: Language, **names: object) -> str:
    """The sentence. Raises KeyError for a key that nobody wrote."""
    sentence = _WORDS[key][LANGUAGES.index(language)]
    return sentence.format(**names) if names else sentence
