{{- define "clickhouse-operator.labels" -}}
app.kubernetes.io/name: clickhouse-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "clickhouse-operator.selector" -}}
app.kubernetes.io/name: clickhouse-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
