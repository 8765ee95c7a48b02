{{/* What the worker may do in a namespace with engines. Verbs and resources by name, never "*". */}}

{{- define "consort.rights" -}}
{{- $write := list "create" "delete" "get" "list" "patch" "watch" -}}
{{- $read := list "get" "list" "watch" -}}
{{- $core := list "configmaps" "persistentvolumeclaims" "services" -}}
{{- if .Values.kubernetes.secrets -}}
{{- $core = append $core "secrets" -}}
{{- end -}}
{{- $rules := list
  (dict "groups" (list "") "resources" $core "verbs" $write)
  (dict "groups" (list "apps") "resources" (list "deployments" "statefulsets") "verbs" $write)
  (dict "groups" (list "batch") "resources" (list "jobs") "verbs" $write)
  (dict "groups" (list "policy") "resources" (list "poddisruptionbudgets") "verbs" $write)
  (dict "groups" (list "resource.k8s.io") "resources" (list "resourceclaimtemplates") "verbs" $write)
  (dict "groups" (list "") "resources" (list "events" "pods") "verbs" $read)
  (dict "groups" (list "") "resources" (list "pods/log") "verbs" (list "get"))
  (dict "groups" (list "apps") "resources" (list "replicasets") "verbs" $read)
  (dict "groups" (list "discovery.k8s.io") "resources" (list "endpointslices") "verbs" $read)
  (dict "groups" (list "resource.k8s.io") "resources" (list "resourceclaims") "verbs" $read) -}}
{{- $kinds := dict
  "gateway" (list
    (dict "groups" (list "gateway.networking.k8s.io") "resources" (list "httproutes") "verbs" $write)
    (dict "groups" (list "inference.networking.k8s.io") "resources" (list "inferencepools") "verbs" $write))
  "leader-worker-set" (list
    (dict "groups" (list "leaderworkerset.x-k8s.io") "resources" (list "leaderworkersets") "verbs" $write))
  "disaggregated-set" (list
    (dict "groups" (list "disaggregatedset.x-k8s.io") "resources" (list "disaggregatedsets") "verbs" $write))
  "kserve" (list
    (dict "groups" (list "serving.kserve.io") "resources" (list "llminferenceservices") "verbs" $write))
  "llm-d" (list
    (dict "groups" (list "inference.networking.x-k8s.io" "llm-d.ai") "resources" (list "inferencemodelrewrites" "inferenceobjectives") "verbs" $write))
  "autoscalers" (list
    (dict "groups" (list "autoscaling") "resources" (list "horizontalpodautoscalers") "verbs" $read)
    (dict "groups" (list "keda.sh") "resources" (list "scaledobjects") "verbs" $read)) -}}
{{- range .Values.kubernetes.kinds -}}
{{- $rules = concat $rules (get $kinds .) -}}
{{- end -}}
{{- range $rules }}
- apiGroups: {{ toJson .groups }}
  resources: {{ toJson .resources }}
  verbs: {{ toJson .verbs }}
{{- end }}
{{- end }}
