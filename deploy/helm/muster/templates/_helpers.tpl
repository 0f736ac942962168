{{- define "muster.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains "muster" .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-muster" .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "muster.labels" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/component: scheduler
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "muster.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "muster.gates" -}}
{{- $all := list -}}
{{- range $name, $on := .Values.featureGates -}}
{{- $all = append $all (printf "%s=%t" $name $on) -}}
{{- end -}}
{{- join "," $all -}}
{{- end -}}
