{{- /* Texts that several files need. */ -}}
{{- define "shop.labels" -}}
app.kubernetes.io/name: shop
app.kubernetes.io/instance: {{ .Release.Name }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "shop.image" -}}
{{- $image := required "set image.repository" .Values.image.repository -}}
{{- printf "%s:%v" $image (.Values.image.tag | default "latest") | quote -}}
{{- end -}}
