{{ define "web.fullname" }}{{ .Release.Name }}{{ end }}
