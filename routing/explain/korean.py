"""The sentences in Korean, under the same keys as in English."""

SENTENCES = {
    "price-cache": (
        "{destination} 선택: {rival}보다 {seconds} 앞섭니다. 프롬프트 {prompt_tokens}토큰 중"
        " {hit_tokens}토큰을 이미 보유하고 있기 때문입니다."
    ),
    "price-wait": (
        "{destination} 선택: {rival}보다 {seconds} 앞섭니다. 대기 시간이 {ours}로 {theirs}보다"
        " 짧기 때문입니다."
    ),
    "price-prefill": (
        "{destination} 선택: {rival}보다 {seconds} 앞섭니다. 프롬프트 계산이 {ours}로"
        " {theirs}보다 빠르기 때문입니다."
    ),
    "price-decode": (
        "{destination} 선택: {rival}보다 {seconds} 앞섭니다. 디코드가 토큰당 {tpot}로"
        " {rival_tpot}보다 빠르기 때문입니다."
    ),
    "price-harm": (
        "{destination} 선택: {rival}보다 {seconds} 앞섭니다. 다른 요청에 주는 지연이 {ours}로"
        " {theirs}보다 작기 때문입니다."
    ),
    "price-transfer": (
        "{destination} 선택: {rival}보다 {seconds} 앞섭니다. KV 전송이 {ours}로 {theirs}보다"
        " 짧기 때문입니다."
    ),
    "price-cold": (
        "{destination} 선택: {rival}보다 {seconds} 앞섭니다. 상대 엔드포인트는 아직 예열 전이고"
        " 예열에 더 걸리는 시간은 {theirs}입니다."
    ),
    "price-slo": (
        "{destination} 선택: {rival}보다 {seconds} 앞섭니다. 상대 엔드포인트는 지연 목표를 지키지"
        " 못하기 때문입니다."
    ),
    "price-money": (
        "{destination} 선택: {rival}보다 {seconds} 앞섭니다. 시간당 비용이 더 낮기 때문이며, 이"
        " 차이는 {gain}로 환산했습니다."
    ),
    "home": (
        "{destination} 유지: {rival} 쪽이 {seconds} 저렴하지만 옮길 만한 이득이 아닙니다. 보유한"
        " 프롬프트는 {prompt_tokens}토큰 중 {hit_tokens}토큰이고, 상대는 {rival_hit_tokens}토큰"
        "입니다."
    ),
    "new-home": (
        "{destination} 선택: 지금은 {rival} 쪽이 {seconds} 저렴하고 프롬프트 {prompt_tokens}토큰 중"
        " {rival_hit_tokens}토큰을 보유하지만, 이어질 요청의 비용이 더 낮은 {destination} 쪽으로"
        " 프리픽스를 옮깁니다."
    ),
    "near-tie": (
        "{destination} 추첨: {rival} 쪽이 {seconds} 저렴하지만 정책이 동률로 보는 범위 안입니다."
    ),
    "tie": "{destination} 추첨: {rival} 쪽과 비용이 {total}로 같습니다.",
    "tie-hit": (
        "{destination} 선택: {rival} 쪽과 비용이 {total}로 같고, 프롬프트 {prompt_tokens}토큰 중"
        " {hit_tokens}토큰으로 더 긴 프리픽스를 보유하고 있습니다."
    ),
    "only-left": (
        "{destination} 선택: 필터에서 {removed}개가 제외되어 남은 유일한 엔드포인트입니다."
    ),
    "only-one": "{destination} 선택: 풀 {pool}의 유일한 엔드포인트입니다.",
    "forced": "{destination} 선택: 시험 권한이 있는 키로 호출자가 지정했습니다.",
    "policy-cheapest": (
        "정책 {policy}의 선택: {destination}. 비용으로도 {rival}보다 {seconds} 앞섭니다."
    ),
    "policy-dearer": (
        "정책 {policy}의 선택: {destination}. 비용으로는 {rival} 쪽이 {seconds} 더 저렴했습니다."
    ),
    "by-policy": "정책 {policy}의 선택: {destination}.",
    "unexplained": "풀 {pool}의 기록에 이유를 말할 만한 정보가 없습니다.",
    "refused": "요청 거부 {status} ({code}): {message}",
    "refused-model-not-found": "요청 거부 {status}: 풀 {pool}에 없는 모델입니다 ({model}).",
    "refused-policy-denied": (
        "요청 거부 {status}: 풀 {pool}에 이 테넌트의 데이터 소재지 조건을 지키는 엔드포인트가"
        " 없습니다."
    ),
    "refused-no-capacity": (
        "요청 거부 {status}: 풀 {pool}에 지금 요청을 받을 수 있는 엔드포인트가 없습니다."
    ),
    "refused-pool-saturated": (
        "요청 거부 {status}: 풀 {pool}에서 가장 한가한 엔드포인트의 대기 시간도 풀이 받아들이는"
        " 한도를 넘습니다. {message}"
    ),
    "refused-tenant-concurrency": (
        "요청 거부 {status}: 테넌트의 동시 요청 수가 한도에 도달했습니다."
    ),
    "refused-tenant-rate": "요청 거부 {status}: 테넌트의 요청 속도가 한도를 넘었습니다.",
    "refused-router-busy": (
        "요청 거부 {status}: 라우터가 풀 {pool}에서 처리할 수 있는 동시 요청 수에 도달했습니다."
    ),
}
POINTS = {
    "pair": "프롬프트 계산: {prefill}. KV 전달: {destination}, {transfer} 소요.",
    "pair-unpriced": "프롬프트 계산: {prefill}. KV 전달: {destination}.",
    "pair-gain": "{destination}에서 프롬프트까지 계산했다면 {gain} 더 들었습니다.",
    "local-gain": "{prefill} → {destination} 쌍을 썼다면 {gain} 더 들었습니다.",
    "local-short": (
        "프롬프트를 디코드 엔드포인트에서 계산합니다. 캐시에 없는 토큰이 {uncached}개뿐입니다."
    ),
    "expected": "예상: 첫 토큰까지 {ttft}, 이후 토큰당 {tpot}, 출력 약 {output}토큰.",
    "real": "실제 첫 토큰까지의 시간: {ttft}.",
    "real-cached": "엔진이 캐시에서 찾은 프롬프트: {cached}토큰, 예상: {hit}토큰.",
    "failed": "시도 결과: {outcome}, 상태 {status}.",
    "filtered": "비용 계산 전에 제외: {rules}.",
    "fallbacks": "실패 시 다음 순서: {names}.",
    "age": "{destination}에서 받은 신호의 나이: {age}.",
    "shadow-same": "섀도 정책 {policy}: 같은 선택.",
    "shadow-other": "섀도 정책 {policy}의 선택: {choice}, {regret} 더 비쌉니다.",
    "shadow-better": "섀도 정책 {policy}의 선택: {choice}, {regret} 더 저렴합니다.",
    "left-out": "목록에 없는 후보: {count}개.",
    "retry": "다시 시도할 수 있는 시점: {retry_after} 후.",
}
RULES = {
    "role": "요청에 응답하지 않는 역할 {count}개 (role)",
    "state": "드레인 중 {count}개 (state)",
    "jurisdiction": "허용된 관할 밖 {count}개 (jurisdiction)",
    "operator": "허용되지 않은 운영사 {count}개 (operator)",
    "residency": "데이터 소재지 위반 {count}개 (residency)",
    "model": "이 모델이 없는 {count}개 (model)",
    "adapter": "이 어댑터가 없는 {count}개 (adapter)",
    "capability": "필요한 기능이 없는 {count}개 (capability)",
    "context-length": "프롬프트보다 컨텍스트가 짧은 {count}개 (context-length)",
    "breaker": "실패로 차단된 {count}개 (breaker)",
    "excluded": "이 요청에서 이미 실패한 {count}개 (excluded)",
    "subset": "게이트웨이가 이 요청을 보내지 않는 {count}개 (subset)",
    "contract": "KV 계약이 맞지 않는 {count}개 (contract)",
    "revision": "모델 리비전이 다른 {count}개 (revision)",
    "forced": "호출자가 지정하지 않은 {count}개 (forced)",
    "not-forced": "다른 엔드포인트가 지정되어 제외된 {count}개 (not-forced)",
    "avoided": "호출자가 제외한 {count}개 (avoided)",
    "not-recorded": "기록에 정보가 없는 {count}개 (not-recorded)",
}
OWN = {
    "only-candidate": "{destination} 선택: 지금 이 요청을 받을 수 있는 유일한 엔드포인트입니다.",
    "price": "{destination} 선택: 예상 소요 시간이 가장 짧습니다.",
    "home": "{destination} 선택: 프롬프트의 {hit_tokens}토큰을 이미 보유하고 있습니다.",
    "tie": "{destination} 선택: 조건이 같은 엔드포인트 중에서 추첨했습니다.",
    "policy": "정책 {policy}: {destination} 선택.",
}
OTHER_RULE = "규칙 {rule}: {count}개"
DEGRADED = {
    "no-engine-signals": "엔진의 최신 지표가 없어 라우터가 보낸 요청만 계산했습니다.",
    "speed-from-class-prior": "속도는 아직 실측하지 않은 가속기 등급의 값입니다.",
    "speed-from-class": "속도는 이 엔드포인트가 아니라 등급에서 학습한 값입니다.",
    "kv-capacity-unknown": "KV 캐시 크기를 몰라 메모리 대기는 계산하지 않았습니다.",
    "no-kv-events": "KV 이벤트가 없어 라우터의 결정으로 캐시 내용을 추정했습니다.",
    "prefill-failed": "프리필 엔드포인트가 실패하여 디코드 엔드포인트에서 프롬프트를 계산합니다.",
    "limits-and-queue": "테넌트 한도와 대기열은 기록에 들어 있지 않습니다.",
    "endpoints-not-recorded": "기록에 없는 엔드포인트는 후보에서 빠졌습니다.",
    "random-numbers": "추첨 결과는 기록되어 있지 않습니다.",
}
OTHER_DEGRADED = "당시 알 수 없던 것: {word}."
SECONDS = "{value}초"
LIST = ", "
