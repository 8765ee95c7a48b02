"""Objects of a gateway as people write them."""

POOL = """
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {name: llama, namespace: serving, creationTimestamp: 2026-11-01T08:00:00Z}
spec:
  selector: {matchLabels: {app: vllm}}
  targetPorts: [{number: 8000}, {number: 8001}]
  appProtocol: http
  endpointPickerRef: {name: epp, port: {number: 9002}, failureMode: FailOpen}
"""

ROUTE = """
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: models}
spec:
  parentRefs: [{kind: Gateway, name: inference-gateway}]
  rules:
  - matches: [{path: {type: PathPrefix, value: /}}]
    backendRefs:
    - {group: inference.networking.k8s.io, kind: InferencePool, name: llama, weight: 3}
    - {group: inference.networking.k8s.io, kind: InferencePool, name: other, weight: 1}
    timeouts: {request: 300s}
"""

OBJECTIVES = """
apiVersion: llm-d.ai/v1alpha2
kind: InferenceObjective
metadata: {name: interactive}
spec: {priority: 10, poolRef: {name: llama}}
---
apiVersion: inference.networking.x-k8s.io/v1alpha2
kind: InferenceObjective
metadata: {name: batch}
spec: {priority: -5, poolRef: {name: llama}}
---
apiVersion: llm-d.ai/v1alpha2
kind: InferenceObjective
metadata: {name: usual}
spec: {poolRef: {name: llama}}
"""

REWRITES = """
apiVersion: llm-d.ai/v1alpha2
kind: InferenceModelRewrite
metadata: {name: canary, creationTimestamp: "2026-11-20T08:00:00Z"}
spec:
  poolRef: {name: llama}
  rules:
  - matches:
    - {model: {type: Exact, value: chat}}
    - {model: {value: assistant}}
    targets:
    - {modelRewrite: granite, weight: 90}
    - {modelRewrite: granite-v2, weight: 10}
---
apiVersion: inference.networking.x-k8s.io/v1alpha2
kind: InferenceModelRewrite
metadata: {name: everything, creationTimestamp: "2026-11-10T08:00:00Z"}
spec:
  poolRef: {name: llama}
  rules:
  - targets: [{modelRewrite: granite}]
"""


def together(*texts: str) -> str:
    return "\n---\n".join(texts)
