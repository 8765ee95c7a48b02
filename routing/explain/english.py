"""The sentences in English. Names in braces are facts; numbers arrive formatted."""

SENTENCES = {
    "price-cache": (
        "{destination} won by {seconds} over {rival} because it holds {hit_tokens} of"
        " {prompt_tokens} prompt tokens."
    ),
    "price-wait": (
        "{destination} won by {seconds} over {rival} because its queue is shorter: {ours} of"
        " waiting against {theirs}."
    ),
    "price-prefill": (
        "{destination} won by {seconds} over {rival} because it computes the prompt faster:"
        " {ours} against {theirs}."
    ),
    "price-decode": (
        "{destination} won by {seconds} over {rival} because it decodes faster: {tpot} per token"
        " against {rival_tpot}."
    ),
    "price-harm": (
        "{destination} won by {seconds} over {rival} because it slows other requests less: {ours}"
        " against {theirs}."
    ),
    "price-transfer": (
        "{destination} won by {seconds} over {rival} because moving the KV costs less: {ours}"
        " against {theirs}."
    ),
    "price-cold": (
        "{destination} won by {seconds} over {rival} because {rival} is still cold and would need"
        " {theirs} to warm up."
    ),
    "price-slo": (
        "{destination} won by {seconds} over {rival} because {rival} would miss the latency"
        " targets."
    ),
    "price-money": (
        "{destination} won by {seconds} over {rival} because it is cheaper per hour, weighed as"
        " {gain}."
    ),
    "home": (
        "{destination} kept the request although {rival} is {seconds} cheaper: it holds"
        " {hit_tokens} of {prompt_tokens} prompt tokens, {rival} holds {rival_hit_tokens}, and"
        " leaving gains too little."
    ),
    "new-home": (
        "{destination} was chosen although {rival} is {seconds} cheaper now and holds"
        " {rival_hit_tokens} of {prompt_tokens} prompt tokens: the prefix moves to {destination},"
        " where the requests that follow cost less."
    ),
    "near-tie": (
        "{destination} was drawn among near-equals: {rival} is {seconds} cheaper, which is within"
        " the tie of the policy."
    ),
    "tie": "{destination} and {rival} cost the same, {total}; the draw fell on {destination}.",
    "tie-hit": (
        "{destination} and {rival} cost the same, {total}; {destination} holds the longer prefix,"
        " {hit_tokens} of {prompt_tokens} prompt tokens."
    ),
    "only-left": "{destination} was the only endpoint left after {removed} were filtered out.",
    "only-one": "{destination} is the only endpoint of pool {pool}.",
    "forced": "{destination} was chosen because the caller asked for it, with a key that may test.",
    "policy-cheapest": (
        "Policy {policy} chose {destination}; by price it is right too, {seconds} before {rival}."
    ),
    "policy-dearer": (
        "Policy {policy} chose {destination}; by price {rival} would have been {seconds} cheaper."
    ),
    "by-policy": "Policy {policy} chose {destination}.",
    "unexplained": "The record of pool {pool} holds too little to say why.",
    "refused": "The request was refused with {status} ({code}): {message}",
    "refused-model-not-found": (
        "The request was refused with {status}: pool {pool} has no model {model}."
    ),
    "refused-policy-denied": (
        "The request was refused with {status}: no endpoint of pool {pool} is where this tenant's"
        " requests may be."
    ),
    "refused-no-capacity": (
        "The request was refused with {status}: no endpoint of pool {pool} can take requests at"
        " present."
    ),
    "refused-pool-saturated": (
        "The request was refused with {status}: even the least busy endpoint of pool {pool} has a"
        " longer queue than the pool accepts. {message}"
    ),
    "refused-tenant-concurrency": (
        "The request was refused with {status}: the tenant runs as many requests as it may."
    ),
    "refused-tenant-rate": (
        "The request was refused with {status}: the tenant sends requests faster than it may."
    ),
    "refused-router-busy": (
        "The request was refused with {status}: the router serves as many requests of pool {pool}"
        " as it may."
    ),
}
POINTS = {
    "pair": "{prefill} computes the prompt and hands its KV to {destination} in {transfer}.",
    "pair-unpriced": "{prefill} computes the prompt and hands its KV to {destination}.",
    "pair-gain": "Computing the prompt at {destination} itself would have cost {gain} more.",
    "local-gain": "The pair {prefill} → {destination} would have cost {gain} more.",
    "local-short": (
        "The prompt is computed where it is decoded: only {uncached} of its tokens are not cached."
    ),
    "expected": (
        "First token expected after {ttft}, then {tpot} per token for about {output} tokens."
    ),
    "real": "In fact the first token came after {ttft}.",
    "real-cached": "The engine found {cached} prompt tokens cached; {hit} were expected.",
    "failed": "The attempt ended as {outcome} with status {status}.",
    "filtered": "Filtered before pricing: {rules}.",
    "fallbacks": "If it fails, the next are {names}.",
    "age": "What {destination} said of itself was {age} old.",
    "shadow-same": "Shadow policy {policy} agrees.",
    "shadow-other": "Shadow policy {policy} would have chosen {choice}, {regret} dearer.",
    "shadow-better": "Shadow policy {policy} would have chosen {choice}, {regret} cheaper.",
    "left-out": "{count} more candidates are not listed.",
    "retry": "It may be tried again after {retry_after}.",
}
RULES = {
    "role": "{count} never answer requests (role)",
    "state": "{count} draining (state)",
    "jurisdiction": "{count} outside the allowed jurisdictions (jurisdiction)",
    "operator": "{count} run by an operator that is not allowed (operator)",
    "residency": "{count} outside the tenant's residency (residency)",
    "model": "{count} without this model (model)",
    "adapter": "{count} without this adapter (adapter)",
    "capability": "{count} without a required capability (capability)",
    "context-length": "{count} with a context too short for the prompt (context-length)",
    "breaker": "{count} held by a breaker after failures (breaker)",
    "excluded": "{count} that failed this request already (excluded)",
    "subset": "{count} that the gateway does not send this request to (subset)",
    "contract": "{count} without a compatible KV contract (contract)",
    "revision": "{count} of another model revision (revision)",
    "forced": "{count} that the caller did not ask for (forced)",
    "not-forced": "{count} because another one is forced (not-forced)",
    "avoided": "{count} that the caller leaves out (avoided)",
    "not-recorded": "{count} of which the record says nothing (not-recorded)",
}
OWN = {
    "only-candidate": "{destination} is the only endpoint that can take this request at present.",
    "price": "{destination} is expected to cost the least time.",
    "home": "{destination} holds {hit_tokens} tokens of the prompt.",
    "tie": "{destination} was drawn among equals.",
    "policy": "Policy {policy} chose {destination}.",
}
"""What the caller is told; no other endpoint is named."""
OTHER_RULE = "{count} by rule {rule}"
DEGRADED = {
    "no-engine-signals": "No fresh metrics of the engine: the router's own requests alone counted.",
    "speed-from-class-prior": "Speeds are those of the accelerator class, not yet measured.",
    "speed-from-class": "Speeds are those learned of its class, not of the endpoint itself.",
    "kv-capacity-unknown": "The size of the KV cache is unknown: no wait for memory was priced.",
    "no-kv-events": "No KV events: what is cached is estimated from the router's own decisions.",
    "prefill-failed": "A prefill endpoint failed: the prompt is computed where it is decoded.",
    "limits-and-queue": "The tenant's limits and the queue are not part of a record.",
    "endpoints-not-recorded": "Endpoints that the record does not tell of took no part.",
    "random-numbers": "The draw is not recorded.",
}
OTHER_DEGRADED = "Not known at the time: {word}."
SECONDS = "{value} s"
LIST = ", "
