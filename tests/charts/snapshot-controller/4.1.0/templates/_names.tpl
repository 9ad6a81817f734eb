{{- define "snapshot-controller.labels" -}}
app.kubernetes.io/name: snapshot-controller
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "snapshot-controller.selector" -}}
app.kubernetes.io/name: snapshot-controller
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
