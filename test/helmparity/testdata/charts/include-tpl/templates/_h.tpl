{{- define "h" -}}
{{- printf "%s" .Chart.Name -}}
{{- end -}}
{{ define "nothing" }}{{ .Values.missing }}{{ end }}{{ define "block" }}a: 1
b:
- x
{{ end }}