{{/* Names, labels and addresses. */}}

{{/* Every object has a name, so that values are checked before anything else. */}}
{{- define "consort.name" -}}
{{- include "consort.checks" . | trim -}}
{{- include "consort.short" . -}}
{{- end }}

{{- define "consort.short" -}}
{{- $name := .Values.fullnameOverride | default .Release.Name -}}
{{- $name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* Labels of a component: dict "root" $ "component" "web". */}}
{{- define "consort.selector" -}}
app.kubernetes.io/name: consort
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "consort.labels" -}}
{{ include "consort.selector" . }}
app.kubernetes.io/part-of: consort
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | quote }}
{{- end }}

{{/* Reference of an image: dict "root" $ "image" .Values.image.router. */}}
{{- define "consort.image" -}}
{{- $place := printf "%s/%s" (trimSuffix "/" .root.Values.image.registry) .image.repository -}}
{{- if .image.digest -}}
{{ $place }}@{{ .image.digest }}
{{- else -}}
{{ $place }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The headless service of routers, as a name of the cluster. */}}
{{- define "consort.routers" -}}
{{ include "consort.short" . }}-router.{{ .Release.Namespace }}.svc
{{- end }}

{{/* Address to listen on, and the same as an argument before a port. */}}
{{- define "consort.listen" -}}
{{ if eq .Values.ipFamily "IPv6" }}::{{ else }}0.0.0.0{{ end }}
{{- end }}
{{- define "consort.bind" -}}
{{ if eq .Values.ipFamily "IPv6" }}[::]{{ else }}0.0.0.0{{ end }}
{{- end }}
