{{/* Parts of network policies. */}}

{{/* Ports of TCP: list 8000 8081. */}}
{{- define "consort.ports" -}}
ports:
  {{- range . }}
  - {protocol: TCP, port: {{ int . }}}
  {{- end }}
{{- end }}

{{/* A rule with peers and ports: dict "side" "to" "peers" list "ports" list. No peers: anybody. */}}
{{- define "consort.flow" -}}
- {{ include "consort.ports" .ports | nindent 2 | trim }}
  {{- with .peers }}
  {{ $.side }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* Pods of one component of this release, as a list of one peer. */}}
{{- define "consort.peer" -}}
- podSelector:
    matchLabels:
      {{- include "consort.selector" . | nindent 6 }}
{{- end }}

{{/* Names, for everybody; by both protocols, since long answers come by TCP. */}}
{{- define "consort.dns" -}}
- ports:
    {{- range .Values.networkPolicy.dns.ports }}
    - {protocol: UDP, port: {{ int . }}}
    - {protocol: TCP, port: {{ int . }}}
    {{- end }}
  {{- with .Values.networkPolicy.dns.to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- define "consort.stores" -}}
{{ include "consort.dns" . }}
# Database.
{{ include "consort.flow" (dict "side" "to" "peers" .Values.networkPolicy.database.to "ports" .Values.networkPolicy.database.ports) }}
# Broker and cache.
{{ include "consort.flow" (dict "side" "to" "peers" .Values.networkPolicy.valkey.to "ports" .Values.networkPolicy.valkey.ports) }}
{{- end }}

{{- define "consort.toRouters" -}}
# Routers: documents, usage, questions; and the console's trials.
- ports:
    - {protocol: TCP, port: 8080}
    - {protocol: TCP, port: 8081}
  to:
    {{- include "consort.peer" (dict "root" . "component" "router") | nindent 4 }}
{{- end }}

{{- define "consort.toEngines" -}}
# Engines: requests, metrics, KV events.
- {{ include "consort.ports" .Values.networkPolicy.engines.ports | nindent 2 | trim }}
  {{- if .Values.networkPolicy.engines.to }}
  to:
    {{- toYaml .Values.networkPolicy.engines.to | nindent 4 }}
  {{- else if .Values.kubernetes.namespaces }}
  to:
    {{- range .Values.kubernetes.namespaces }}
    - namespaceSelector:
        matchLabels: {kubernetes.io/metadata.name: {{ . }}}
    {{- end }}
  {{- end }}
{{- end }}
