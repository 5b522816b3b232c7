{{- define "shop.labels" -}}
app.kubernetes.io/name: shop
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
{{- /* What selects the pods of a part: call with (dict "root" . "part" "web"). */ -}}
{{- define "shop.selector" -}}
app.kubernetes.io/component: {{ .part }}
{{ include "shop.labels" .root }}
{{- end -}}
{{- define "shop.settings" -}}
GREETING: {{ .Values.greeting | quote }}
{{- if .Values.cache.enabled }}
CACHE: {{ printf "%s-cache:%v" .Release.Name .Values.cache.port | quote }}
{{- end }}
{{- end -}}
{{- define "shop.password" -}}
- name: DATABASE_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ .Values.databaseSecret | quote }}
      key: password
{{- end -}}
{{- /* A deployment and its service: call with (dict "root" . "part" "web" "wave" "1"). */ -}}
{{- define "shop.workload" -}}
{{- $name := printf "%s-%s" .root.Release.Name .part -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  {{- with .wave }}
  annotations:
    shop.example.com/apply-order: {{ . | quote }}
  {{- end }}
  labels:
    {{- include "shop.selector" . | nindent 4 }}
spec:
  replicas: {{ .root.Values.replicas }}
  selector:
    matchLabels:
      {{- include "shop.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "shop.selector" . | nindent 8 }}
      annotations:
        # Other settings change this line, and so roll the pods.
        shop.example.com/settings: {{ include "shop.settings" .root | sha256sum | trunc 16 | quote }}
    spec:
      containers:
        - name: {{ .part }}
          image: {{ .root.Values.image | quote }}
          ports:
            - name: http
              containerPort: 8080
          envFrom:
            - configMapRef:
                name: {{ .root.Release.Name }}-settings
          env:
            {{- include "shop.password" .root | nindent 12 }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  labels:
    {{- include "shop.labels" .root | nindent 4 }}
spec:
  selector:
    {{- include "shop.selector" . | nindent 4 }}
  ports:
    - name: http
      port: 80
      targetPort: http
{{- end -}}
