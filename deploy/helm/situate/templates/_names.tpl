{{/* What the objects of this release are called. */}}
{{- define "situate.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $chart := default .Chart.Name .Values.nameOverride -}}
{{- $whole := contains $chart .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $chart) -}}
{{- $whole | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "situate.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: scheduler
{{- end -}}

{{- define "situate.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "situate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "situate.webName" -}}
{{- printf "%s-web" (include "situate.name" . | trunc 59 | trimSuffix "-") -}}
{{- end -}}

{{- define "situate.webSelector" -}}
{{ include "situate.selector" . | replace "component: scheduler" "component: web" }}
{{- end -}}

{{- define "situate.webLabels" -}}
{{ include "situate.labels" . | replace "component: scheduler" "component: web" }}
{{- end -}}

{{- define "situate.subjects" -}}
- kind: ServiceAccount
  name: {{ include "situate.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- define "situate.lease" -}}
{{- default (include "situate.name" .) .Values.lease.name -}}
{{- end -}}

{{- define "situate.leaseNamespace" -}}
{{- default .Release.Namespace .Values.lease.namespace -}}
{{- end -}}

{{/* The KubeSchedulerConfiguration. Without preemption, the plugin is off, so that nobody asks for what is forbidden. */}}
{{- define "situate.config" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceName: {{ include "situate.lease" . }}
  resourceNamespace: {{ include "situate.leaseNamespace" . }}
{{- with .Values.config }}
{{ toYaml . }}
{{- end }}
profiles:
{{- if .Values.profiles }}
{{ toYaml .Values.profiles | indent 2 }}
{{- else }}
{{- range .Values.schedulerNames }}
  - schedulerName: {{ . }}
{{- if not $.Values.preemption.enabled }}
    plugins:
      multiPoint:
        disabled:
          - name: DefaultPreemption
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
