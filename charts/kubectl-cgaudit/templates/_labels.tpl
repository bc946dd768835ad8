{{- define "cgaudit.labels" -}}
app.kubernetes.io/name: kubectl-cgaudit
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}
