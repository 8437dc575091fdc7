{{- define "labels" -}}
app.kubernetes.io/name: multi-attach-guard
{{- end -}}

{{- /* The documents of one of the files, as a JSON list, in the release's namespace. */ -}}
{{- define "documents" -}}
{{- $namespace := .context.Release.Namespace -}}
{{- $text := .context.Files.Get (printf "files/%s" .file) -}}
{{- $text = $text | replace "namespace: multi-attach-guard" (printf "namespace: %q" $namespace) -}}
{{- $text = $text | replace "multi-attach-guard.multi-attach-guard.svc" (printf "multi-attach-guard.%s.svc" $namespace) -}}
{{- $documents := list -}}
{{- range splitList "\n---\n" $text -}}
{{- $documents = append $documents (fromYaml .) -}}
{{- end -}}
{{- toJson $documents -}}
{{- end -}}
