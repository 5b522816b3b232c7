{{- define "labels" -}}
app.kubernetes.io/name: {{ .Name }}
app.kubernetes.io/part-of: shop
{{- end -}}
{{- /* A deployment and its service: call with (dict "root" . "part" "web"). */ -}}
{{- define "workload" -}}
{{- $name := printf "%s-%s" .root.Name .part -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  labels:
    app.kubernetes.io/component: {{ .part }}
    {{- include "labels" .root | nindent 4 }}
spec:
  replicas: {{ .root.Values.replicas }}
  selector:
    matchLabels:
      app.kubernetes.io/component: {{ .part }}
      app.kubernetes.io/name: {{ .root.Name }}
  template:
    metadata:
      labels:
        app.kubernetes.io/component: {{ .part }}
        {{- include "labels" .root | nindent 8 }}
      annotations:
        # A new greeting changes this line, and so rolls the pods.
        shop.example.com/settings: {{ include "settings" .root | sha256sum | trunc 16 }}
    spec:
      containers:
        - name: {{ .part }}
          image: {{ .root.Values.image }}
          ports:
            - name: http
              containerPort: 8080
          envFrom:
            - configMapRef:
                name: {{ .root.Name }}-settings
          env:
            - name: DATABASE_PASSWORD
              valueFrom:
                secretKeyRef:
                  name: {{ .root.Values.databaseSecret }}
                  key: password
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  labels:
    {{- include "labels" .root | nindent 4 }}
spec:
  selector:
    app.kubernetes.io/component: {{ .part }}
    app.kubernetes.io/name: {{ .root.Name }}
  ports:
    - name: http
      port: 80
      targetPort: http
{{- end -}}
{{- define "settings" -}}
GREETING: {{ .Values.greeting | quote }}
{{- end -}}
