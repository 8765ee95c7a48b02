"""Types beyond scheduling: producers, data layer, admission, flow control, parsers; old names."""

from typing import Any, Literal

from routing.llmd.catalogue import (
    SCHEDULING,
    Anything,
    PluginSpec,
    experimental,
    is_open,
    known,
    mapped,
    shape,
)

_TOKEN_PROCESSOR = shape(
    blockSizeTokens=(int, 16),
    blockSize=(int, 0),
    hashSeed=(str, ""),
    hashAlgorithm=(Literal["cbor-fnv", "xxh64"], "cbor-fnv"),
)
_BLOCK_INDEX = shape(
    inMemoryConfig=(Anything, {}),
    redisConfig=(Anything, {}),
    costAwareMemoryConfig=(Anything, {}),
    enableMetrics=(bool, False),
    metricsLoggingInterval=(int | str | None, None),
    maxPrefixTokensToMatch=(int | None, None),
)
_INDEXER = shape(
    kvBlockIndexConfig=(_BLOCK_INDEX, _BLOCK_INDEX),
    kvCacheBackendConfigs=(list[Any], []),
    # Places of before; the index is the router's own in any case.
    tokenProcessorConfig=(_TOKEN_PROCESSOR, _TOKEN_PROCESSOR),
    tokenizersPoolConfig=(Anything, {}),
)
_EVENTS = shape(
    zmqEndpoint=(str, ""),
    topicFilter=(str, "kv@"),
    concurrency=(int, 4),
    engineType=(Literal["vllm", "sglang"], "vllm"),
    discoverPods=(bool, True),
    podDiscoveryConfig=(Anything, {}),
)
_PRECISE = {
    "tokenProcessorConfig": (_TOKEN_PROCESSOR, _TOKEN_PROCESSOR),
    "indexerConfig": (_INDEXER, _INDEXER),
    "kvEventsConfig": (_EVENTS, _EVENTS),
    "speculativeIndexing": (bool, False),
    "speculativeTTL": (str, "2s"),
}
_VLLM = shape(url=(str, "http://localhost:8000"), timeout=(str, "5s"), mmTimeout=(str, "30s"))
_ROUTERS_OWN = "the router does this itself; the parameters have no effect"

OTHER: dict[str, PluginSpec] = {
    "approx-prefix-cache-producer": mapped(
        "producer",
        autoTune=(bool, True),
        blockSizeTokens=(int, 16),
        maxPrefixBlocksToMatch=(int, 2048),
        maxPrefixTokensToMatch=(int, 131_072),
        lruCapacityPerServer=(int, 31_250),
    ),
    "precise-prefix-cache-producer": mapped(
        "producer", "the router's own index; events are configured per endpoint", **_PRECISE
    ),
    "burst-prefix-cache-producer": experimental(
        known(
            "producer",
            "scorers count what the router's own index holds",
            windowDurationMs=(int, 100),
            maxPerReplica=(int, -1),
            blockSizeTokens=(int, 64),
            minColocateBlocks=(int, 0),
            maxBatchSize=(int, 1000),
            balanceBy=(Literal["requests", "tokens"], "requests"),
        )
    ),
    "inflight-load-producer": mapped(
        "producer",
        "uncached prompt tokens of open requests; output tokens are not added",
        addEstimatedOutputTokens=(bool, False),
        outputRatio=(float, 1.5),
        maxEstimatedOutputTokens=(int | None, None),
    ),
    "token-producer": known(
        "producer",
        "tokenising is the pool document's prompt_identity",
        modelName=(str, ""),
        backend=(str, ""),
        vllm=(_VLLM | None, None),
        estimate=(Anything | None, None),
    ),
    "predicted-latency-producer": known(
        "producer",
        "predictions are our learned speeds",
        samplingMean=(float, 1000.0),
        sloBufferFactor=(float, 1.0),
        contextTTL=(str, "5m"),
        streamingMode=(bool, False),
        endpointRoleLabel=(str, ""),
    ),
    "session-id-producer": known("producer", headerName=(str, ""), cookieName=(str, "")),
    "p2p-source-producer": experimental(known("producer", minCachedTokenDelta=(int, 1))),
    "mm-embeddings-cache-producer": known(
        "producer", "pictures are a part of the prompt here", cacheSizeInMBPerServer=(int, 4096)
    ),
    "metrics-data-source": mapped(
        "data-layer",
        _ROUTERS_OWN,
        scheme=(str, "http"),
        path=(str, "/metrics"),
        port=(int | str | None, None),
        insecureSkipVerify=(bool, True),
        caCertPath=(str, ""),
        clientCertPath=(str, ""),
        clientKeyPath=(str, ""),
        interval=(str, "50ms"),
    ),
    "core-metrics-extractor": mapped(
        "data-layer",
        _ROUTERS_OWN,
        engineLabelKey=(str, "llm-d.ai/engine-type"),
        defaultEngine=(str, "vllm"),
        engineConfigs=(list[Anything], []),
    ),
    "models-data-source": is_open("data-layer"),
    "models-data-extractor": is_open("data-layer"),
    "dcgm-data-source": experimental(is_open("data-layer")),
    "dcgm-extractor": experimental(is_open("data-layer")),
    "topology-extractor": experimental(is_open("data-layer")),
    "k8s-notification-source": known("data-layer", "endpoints come with the pool document"),
    "endpoint-notification-source": known("data-layer", "endpoints come with the pool document"),
    "file-discovery": known(
        "data-layer",
        "endpoints come with the pool document",
        path=(str, ""),
        watchFile=(bool, False),
    ),
    "latency-slo-admitter": is_open("admission", "admission here is by expected wait"),
    "probabilistic-admitter": known(
        "admission",
        "admission here is by expected wait",
        queueDepthThreshold=(float, 5.0),
        kvCacheUtilThreshold=(float, 0.8),
        power=(float, 5.0),
        k=(float, 300.0),
    ),
    "utilization-detector": known(
        "flow-control",
        "saturation here is expected wait in seconds",
        queueDepthThreshold=(int, 5),
        kvCacheUtilThreshold=(float, 0.8),
        metricsStalenessThreshold=(str, "200ms"),
        headroom=(float, 0.0),
    ),
    "concurrency-detector": known(
        "flow-control",
        "saturation here is expected wait in seconds",
        concurrencyMode=(Literal["requests", "tokens", "hybrid"], "requests"),
        maxConcurrency=(int, 100),
        maxTokenConcurrency=(int, 1_000_000),
        headroom=(float, 0.0),
    ),
    "global-strict-fairness-policy": known("flow-control", "tenants share by tokens here"),
    "round-robin-fairness-policy": known("flow-control", "tenants share by tokens here"),
    "program-aware-fairness": known(
        "flow-control",
        "tenants share by tokens here",
        lasWeightService=(float, 0.8),
        lasWeightHeadWait=(float, 0.2),
        lasHalfLifeSeconds=(float, 60.0),
        evictionTtlSeconds=(float, 3600.0),
    ),
    "fcfs-ordering-policy": known("flow-control", "deadlines order a tenant's requests here"),
    "edf-ordering-policy": known("flow-control", "deadlines order a tenant's requests here"),
    "slo-deadline-ordering-policy": known(
        "flow-control", "deadlines order a tenant's requests here"
    ),
    "priority-holdback-policy": experimental(
        known(
            "flow-control",
            "bands are strict here: a lower one waits while a higher one does",
            minCeiling=float,
            maxCeiling=(float, 1.0),
            domain=(Literal["rank", "value"], "rank"),
            shape=(str, "linear"),
        )
    ),
    "static-usage-limit-policy": known("flow-control", threshold=(float, 1.0)),
    "soft-reflective-ceiling-policy": experimental(is_open("flow-control")),
    "sheddable-eviction-filter": experimental(is_open("flow-control")),
    "priority-then-time-eviction-order-policy": experimental(is_open("flow-control")),
    "thunder-agent": experimental(
        is_open("scorer", "sessions stay with their endpoint by price; tenants share by tokens")
    ),
    "dp-rank-header-handler": known(
        "request-control", "ranks are endpoints of their own here, named to the engine by header"
    ),
    "request-attribute-reporter": is_open("request-control"),
    "agent-identity": experimental(
        known(
            "request-control",
            "sessions of the usual headers are flows here",
            additionalSessionHeaders=(list[str], []),
        )
    ),
    "disaggregatedset-rollout-screener": experimental(is_open("other")),
    "header-based-testing-filter": is_open("filter", "for tests"),
    "destination-endpoint-served-verifier": is_open("request-control", "for tests"),
} | {
    f"{name}-parser": is_open("parser", "the router reads what its APIs need")
    for name in (
        "openai",
        "anthropic",
        "vllmhttp",
        "vllmgrpc",
        "sglanghttp",
        "vertexai",
        "passthrough",
    )
}

TYPES: dict[str, PluginSpec] = SCHEDULING | OTHER
OLD_TYPES = {
    "by-label-selector": "label-selector-filter",
    "pd-profile-handler": "disagg-profile-handler",
    "tokenizer": "token-producer",
    "kv-cache-scorer": "kv-cache-utilization-scorer",
    "model-server-protocol-metrics": "core-metrics-extractor",
    "prefill-header-handler": "disagg-headers-handler",
}
"""Deprecated names with the same parameters, but for the handler's flat ones."""
OLD_SCORER = "precise-prefix-cache-scorer"
"""Deprecated: a producer and a scorer in one, with the producer's parameters."""
OLD_HANDLER_FIELDS = {
    "decodeProfile": ("profiles", "decode"),
    "prefillProfile": ("profiles", "prefill"),
    "encodeProfile": ("profiles", "encode"),
    "deciderPluginName": ("deciders", "prefill"),
}
OLD_PREFIX_FIELDS = (
    "autoTune",
    "blockSizeTokens",
    "maxPrefixBlocksToMatch",
    "maxPrefixTokensToMatch",
    "lruCapacityPerServer",
)
"""Of `prefix-cache-scorer`, before its producer stood by itself."""
PRECISE_FIELDS = frozenset(_PRECISE)


def spec_of(type_name: str) -> PluginSpec | None:
    """What is known of a type, `None` when nothing is; every multi-cluster type is carried."""
    found = TYPES.get(type_name)
    if found is None and type_name.startswith("multicluster-"):
        return experimental(is_open("other", "several clusters are several pools here"))
    return found
