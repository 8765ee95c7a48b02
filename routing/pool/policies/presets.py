"""llm-d's published profiles as documents of the weighted policy: the same code runs them.

- `llm-d-weighted`: queue 2, KV usage 2, prefix 3 over the approximate index (31,250 blocks of 64
  tokens an endpoint, up to 2,048 of a prompt). Disaggregated as KServe renders it: always a pair,
  prefill as above, decode by active requests 2 and prefix 3.
- `llm-d-precise`: the same weights over engine events.
- `llm-d-token-aware`: prefix affinity, then token load. Disaggregated: peak prefill 33,821
  tokens/s, decode by active requests, a pair from 16 uncached tokens.
"""

from typing import Any

from routing.core.document import Plugin, Policy, Profile
from routing.pool.policies.memory import APPROXIMATE, PRECISE

PAIR_FROM_TOKENS = 16
PEAK_OF_PREFILL_ENDPOINTS = 33_821
PRESETS = ("llm-d-weighted", "llm-d-precise", "llm-d-token-aware")


def preset(name: str, *, is_disaggregated: bool) -> Policy:
    """The policy document behind one of `PRESETS`."""
    if name == "llm-d-token-aware":
        return _token_aware() if not is_disaggregated else _token_aware_pairs()
    producer = _plugin(PRECISE)
    if name == "llm-d-weighted":
        producer = _plugin(APPROXIMATE, autoTune=False)
    weights = (
        _plugin("queue-scorer", weight=2),
        _plugin("kv-cache-utilization-scorer", weight=2),
        _plugin("prefix-cache-scorer", weight=3),
    )
    if not is_disaggregated:
        return Policy(
            name="weighted",
            plugins=(producer,),
            profiles=(Profile(name="default", plugins=weights),),
        )
    decode = (
        _plugin("active-request-scorer", weight=2),
        _plugin("prefix-cache-scorer", weight=3),
    )
    decider = _plugin("always-disagg-pd-decider")
    return _pairs(producer, decider, prefill=weights, decode=decode)


def _token_aware() -> Policy:
    plugins = (_plugin("prefix-cache-affinity-filter"), _plugin("token-load-scorer"))
    return Policy(name="weighted", profiles=(Profile(name="default", plugins=plugins),))


def _token_aware_pairs() -> Policy:
    affinity = _plugin(
        "prefix-cache-affinity-filter", peakPrefillThroughput=PEAK_OF_PREFILL_ENDPOINTS
    )
    return _pairs(
        _plugin(APPROXIMATE),
        _plugin("prefix-based-pd-decider", nonCachedTokens=PAIR_FROM_TOKENS),
        prefill=(affinity, _plugin("token-load-scorer")),
        decode=(_plugin("active-request-scorer"),),
    )


def _pairs(
    producer: Plugin,
    decider: Plugin,
    *,
    prefill: tuple[Plugin, ...],
    decode: tuple[Plugin, ...],
) -> Policy:
    handler = _plugin("disagg-profile-handler", deciders={"prefill": decider.type})
    return Policy(
        name="weighted",
        plugins=(producer, decider, handler),
        profiles=(
            Profile(name="prefill", plugins=(_plugin("prefill-filter"), *prefill)),
            Profile(name="decode", plugins=(_plugin("decode-filter"), *decode)),
        ),
    )


def _plugin(type_name: str, *, weight: float = 1.0, **parameters: Any) -> Plugin:
    return Plugin(type=type_name, weight=weight, parameters=parameters)
