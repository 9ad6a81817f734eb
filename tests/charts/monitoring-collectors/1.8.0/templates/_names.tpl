{{- define "monitoring-collectors.labels" -}}
app.kubernetes.io/name: monitoring-collectors
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "monitoring-collectors.selector" -}}
app.kubernetes.io/name: monitoring-collectors
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
