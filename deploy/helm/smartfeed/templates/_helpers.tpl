{{/* At most 40 bytes: the names of objects and pods are labels, of at most 63 bytes. */}}
{{- define "smartfeed.fullname" -}}
{{- $default := contains .Chart.Name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) }}
{{- .Values.fullnameOverride | default $default | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "smartfeed.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "smartfeed.labels" -}}
{{ include "smartfeed.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* smartfeed.yaml. The chart sets the keys that depend on the pod in the environment. */}}
{{- define "smartfeed.config" -}}
{{- range list "http" "advertise" "dir" "features_file" }}
{{- if hasKey $.Values.config . }}{{ fail (printf "config.%s: the chart sets this key" .) }}{{ end }}
{{- end }}
{{- toYaml .Values.config }}
{{- end }}

{{/* smartfeed.yaml without the keys that a process reloads. */}}
{{- define "smartfeed.fixedConfig" -}}
{{- $generator := omit (dig "generator" dict .Values.config) "feeds" }}
{{- toYaml (set (omit .Values.config "verbs") "generator" $generator) }}
{{- end }}

{{/* https if the API has a certificate. */}}
{{- define "smartfeed.scheme" -}}
{{ if dig "api" "tls" "cert_file" "" .Values.config }}https{{ else }}http{{ end }}
{{- end }}

{{/* Fields of all pods. 65532 is the user of the image. */}}
{{- define "smartfeed.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* Fields of all containers. */}}
{{- define "smartfeed.container" -}}
image: {{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: data, mountPath: /data}
  - {name: tmp, mountPath: /tmp}
  - {name: config, mountPath: /etc/smartfeed/config, readOnly: true}
  {{- range .Values.secrets }}
  - {name: secret-{{ . }}, mountPath: /etc/smartfeed/secrets/{{ . }}, readOnly: true}
  {{- end }}
{{- end }}

{{/* Volumes of all pods, except config and data. Kubernetes updates their files while the pod runs. */}}
{{- define "smartfeed.volumes" -}}
- {name: tmp, emptyDir: {sizeLimit: 64Mi}}
{{- range .Values.secrets }}
- {name: secret-{{ . }}, secret: {secretName: {{ . }}, defaultMode: 0440}}
{{- end }}
{{- end }}
