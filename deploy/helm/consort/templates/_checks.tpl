{{/* Values that are each of their type, but do not fit together: sentences that say what to do. */}}

{{- define "consort.checks" -}}
{{- $values := .Values -}}
{{- if not $values.image.registry -}}
{{- fail "image.registry is empty: name the registry that holds the images, such as registry.example. Without it the cluster would ask a public one." -}}
{{- end -}}
{{- if not $values.hosts -}}
{{- fail "hosts is empty: list the names by which browsers reach the console, such as [consort.example]." -}}
{{- end -}}
{{- if not $values.secrets.name -}}
{{- fail "secrets.name is empty: make a Secret with the keys secret-key, token-pepper, database-url, broker-url and cache-url, and name it." -}}
{{- end -}}
{{- if and $values.secrets.authorities.secret $values.secrets.authorities.configMap -}}
{{- fail "secrets.authorities names a Secret and a ConfigMap: choose one; it must hold all authorities." -}}
{{- end -}}
{{- range $name, $_ := $values.settings -}}
{{- if has $name (list "SECRET_KEY" "TOKEN_PEPPER" "ENGINE_HOST_TOKEN" "DATABASE_URL" "BROKER_URL" "CACHE_URL") -}}
{{- fail (printf "settings.%s is a secret, and settings stand in a ConfigMap: put it into the Secret of secrets.name." $name) -}}
{{- end -}}
{{- if has $name (list "ALLOWED_HOSTS" "CSRF_TRUSTED_ORIGINS" "SECURE_COOKIES" "DEBUG" "DEMO_PLUG" "STATIC_ROOT" "CONSORT_VAR" "LIVENESS_FILE" "CLUSTER_CREDENTIALS_DIR") -}}
{{- fail (printf "settings.%s is set by the chart: leave it out. Host names go to hosts, credentials of clusters to kubernetes.credentials." $name) -}}
{{- end -}}
{{- if hasSuffix "_FILE" $name -}}
{{- fail (printf "settings.%s names a file, and the chart places files itself: put the content into the Secret of secrets.name." $name) -}}
{{- end -}}
{{- end -}}
{{- if and $values.kubernetes.adoption (not $values.kubernetes.discovery) -}}
{{- fail "kubernetes.adoption reads the whole cluster, and kubernetes.discovery is false: turn both on, or both off." -}}
{{- end -}}
{{- include "consort.checkRouters" . -}}
{{- include "consort.checkEntry" . -}}
{{- end }}

{{- define "consort.checkRouters" -}}
{{- $router := .Values.router -}}
{{- if $router.replicas -}}
{{- if not $router.tokens.secret -}}
{{- fail (printf "router.tokens.secret is empty: make a Secret with a token for each of %d routers (%s-router-0 and so on), or set router.replicas to 0." (int $router.replicas) (include "consort.short" .)) -}}
{{- end -}}
{{- if not $router.tls.secret -}}
{{- fail (printf "router.tls.secret is empty: documents hold salts and hashes of keys and must not pass in clear. Make a certificate for *.%s." (include "consort.routers" .)) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "consort.checkEntry" -}}
{{- $values := .Values -}}
{{- if and $values.gateway.enabled $values.ingress.enabled -}}
{{- fail "gateway.enabled and ingress.enabled are both true: choose one way in, or the other's rules do not hold." -}}
{{- end -}}
{{- if and $values.gateway.enabled (not $values.gateway.parentRefs) -}}
{{- fail "gateway.parentRefs is empty: name the Gateway that the routes belong to." -}}
{{- end -}}
{{- if and $values.ingress.enabled (not $values.ingress.tlsSecret) -}}
{{- fail "ingress.tlsSecret is empty: sessions and keys must not pass in clear. Name the Secret with the certificate." -}}
{{- end -}}
{{- $inference := concat $values.gateway.inferenceHosts $values.ingress.inferenceHosts -}}
{{- if and $inference (not $values.router.replicas) -}}
{{- fail "inferenceHosts names hosts for routers, and router.replicas is 0: there is nobody to route to." -}}
{{- end -}}
{{- range $inference -}}
{{- if has . $values.hosts -}}
{{- fail (printf "%s stands in hosts and in inferenceHosts: the console and the routers need names of their own." .) -}}
{{- end -}}
{{- end -}}
{{- end }}
