{{/* Parts that pods have in common. */}}

{{/* What each pod begins with: dict "root" $ "component" "web" "account" true|false "values" .Values.web. */}}
{{- define "consort.pod" -}}
{{- $values := .values -}}
automountServiceAccountToken: {{ .account | default false }}
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- with .root.Values.security.runAs }}
  runAsUser: {{ int . }}
  runAsGroup: {{ int . }}
  fsGroup: {{ int . }}
  {{- end }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Pods of one component on different nodes and zones, as far as that is possible. */}}
{{- define "consort.spread" -}}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "consort.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}

{{- define "consort.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* Settings of the control plane, the same for the ConfigMap and for the hook's own. */}}
{{- define "consort.settings" -}}
{{- range $name, $value := .Values.settings }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- if not .Values.settings.PREFETCH_IMAGE }}
# Jobs that bring files of models to nodes are made of our own image.
PREFETCH_IMAGE: {{ include "consort.image" (dict "root" $ "image" .Values.image.controlPlane) }}
{{- end }}
ALLOWED_HOSTS: {{ join "," .Values.hosts | quote }}
CSRF_TRUSTED_ORIGINS: {{ range $number, $host := .Values.hosts }}{{ if $number }},{{ end }}https://{{ $host }}{{ end }}
SECURE_COOKIES: "true"
DEBUG: "false"
CONSORT_VAR: /var/lib/consort
LIVENESS_FILE: /var/lib/consort/alive
CLUSTER_CREDENTIALS_DIR: /run/consort/clusters
SECRET_KEY_FILE: /run/consort/secrets/secret-key
TOKEN_PEPPER_FILE: /run/consort/secrets/token-pepper
DATABASE_URL_FILE: /run/consort/secrets/database-url
BROKER_URL_FILE: /run/consort/secrets/broker-url
CACHE_URL_FILE: /run/consort/secrets/cache-url
{{- if or .Values.secrets.authorities.secret .Values.secrets.authorities.configMap }}
SSL_CERT_FILE: /run/consort/authorities/ca.crt
{{- end }}
{{- end }}

{{/* Routers that the chart runs, for `manage.py upgrade`. */}}
{{- define "consort.declaredRouters" -}}
{{- $routers := list -}}
{{- range $number := until (int .Values.router.replicas) -}}
{{- $name := printf "%s-router-%d" (include "consort.name" $) $number -}}
{{- $host := printf "%s.%s" $name (include "consort.routers" $) -}}
{{- $routers = append $routers (dict
  "name" $name
  "admin_url" (printf "https://%s:8081" $host)
  "public_url" ($.Values.router.publicUrl | default (printf "http://%s:8080" $host))
  "token_reference" (printf "file:/run/consort/router-tokens/%s" $name)) -}}
{{- end -}}
{{- $routers | mustToPrettyJson -}}
{{- end }}

{{/* Mounts and volumes of every pod of the control plane: dict "root" $ "tokens" true|false. */}}
{{- define "consort.mounts" -}}
- name: var
  mountPath: /var/lib/consort
- name: tmp
  mountPath: /tmp
- name: secrets
  mountPath: /run/consort/secrets
  readOnly: true
{{- if and .tokens .root.Values.router.tokens.secret }}
- name: router-tokens
  mountPath: /run/consort/router-tokens
  readOnly: true
{{- end }}
{{- if or .root.Values.secrets.authorities.secret .root.Values.secrets.authorities.configMap }}
- name: authorities
  mountPath: /run/consort/authorities
  readOnly: true
{{- end }}
{{- end }}

{{- define "consort.volumes" -}}
- name: var
  emptyDir: {sizeLimit: 256Mi}
- name: tmp
  emptyDir: {sizeLimit: 512Mi}
- name: secrets
  secret:
    secretName: {{ .root.Values.secrets.name }}
    defaultMode: 0400
    items:
      {{- range list "secret-key" "token-pepper" "database-url" "broker-url" "cache-url" }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
{{- if and .tokens .root.Values.router.tokens.secret }}
- name: router-tokens
  secret:
    secretName: {{ .root.Values.router.tokens.secret }}
    defaultMode: 0400
{{- end }}
{{- with .root.Values.secrets.authorities.secret }}
- name: authorities
  secret:
    secretName: {{ . }}
    defaultMode: 0400
    items: [{key: ca.crt, path: ca.crt}]
{{- end }}
{{- with .root.Values.secrets.authorities.configMap }}
- name: authorities
  configMap:
    name: {{ . }}
    items: [{key: ca.crt, path: ca.crt}]
{{- end }}
{{- end }}

{{/* Probe of a process without a port, by the age of its file: dict "seconds" 60. */}}
{{- define "consort.alive" -}}
exec:
  command: [python, -m, controlplane.config.liveness, /var/lib/consort/alive, --seconds, {{ .seconds | quote }}]
periodSeconds: 15
timeoutSeconds: 10
{{- end }}
