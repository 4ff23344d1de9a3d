{{- define "trainyard.name" -}}
{{- printf "%s-%s" .Release.Name "trainyard" | trunc 48 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels of every object; call with (list $ "component"). */}}
{{- define "trainyard.labels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: trainyard
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end -}}

{{- define "trainyard.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: trainyard
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* An image reference; call with (list $ repository). */}}
{{- define "trainyard.image" -}}
{{- $root := index . 0 -}}
{{- $tag := $root.Values.image.tag | default $root.Chart.AppVersion -}}
{{- $repo := index . 1 -}}
{{- if $root.Values.image.registry }}{{ $repo = printf "%s/%s" $root.Values.image.registry $repo }}{{ end -}}
{{- if hasPrefix "sha256:" $tag }}{{ printf "%s@%s" $repo $tag }}{{ else }}{{ printf "%s:%s" $repo $tag }}{{ end -}}
{{- end -}}

{{/* Loopback unless credentials are given: an endpoint without them is for the pod alone. Call with the component's values. */}}
{{- define "trainyard.listen" -}}
{{- if .webConfigSecret }}{{ printf ":%v" .port }}{{ else }}{{ printf "127.0.0.1:%v" .port }}{{ end -}}
{{- end -}}

{{/* Rights of a container that needs none. */}}
{{- define "trainyard.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "trainyard.podRestricted" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Probes cannot pass basic auth and must not need it; call with port and whether it listens beyond loopback. */}}
{{- define "trainyard.probe" -}}
tcpSocket:
  port: {{ .port }}
{{- end -}}
