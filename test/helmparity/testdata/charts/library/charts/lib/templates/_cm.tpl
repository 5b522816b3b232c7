{{ define "lib.cm" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .name }}
data:
  release: {{ .root.Release.Name }}
  values: {{ toJson .root.Values.lib | quote }}
{{- end }}