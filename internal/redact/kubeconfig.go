// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// publicFields of a kubeconfig hold names, addresses and words. To hide them would
// hide "Config" in every "ConfigMap", and the namespace "default" wherever it is named.
var publicFields = []string{
	"apiVersion", "kind", "name", "cluster", "user", "namespace", "current-context", "server", "tls-server-name",
}

// isKubeconfig tells whether the text looks like one; what is no secret then is at
// most what stands in public fields.
func isKubeconfig(text string) bool {
	return strings.Contains(text, "current-context") && strings.Contains(text, "contexts") && strings.Contains(text, "clusters")
}

// kubeconfigParts returns what a message may tell alone of a kubeconfig.
func kubeconfigParts(text string) []string {
	var parts []string
	var document any
	if yaml.Unmarshal([]byte(text), &document) == nil {
		parts = secretLeaves(document, parts)
	}
	for line := range strings.Lines(text) {
		if len(parts) >= maxParts {
			break
		}
		line = strings.TrimPrefix(strings.TrimSpace(line), "- ")
		field, right, assigns := strings.Cut(line, ":")
		if assigns && (right == "" || slices.Contains(publicFields, field)) {
			continue
		}
		parts = append(parts, line, assigned(line))
	}
	return parts
}

// secretLeaves are the leaves that do not stand in public fields.
func secretLeaves(value any, into []string) []string {
	switch v := value.(type) {
	case map[string]any:
		for field, child := range v {
			if _, leaf := child.(string); !leaf || !slices.Contains(publicFields, field) {
				into = secretLeaves(child, into)
			}
		}
	case []any:
		for _, child := range v {
			into = secretLeaves(child, into)
		}
	case string:
		into = append(into, v)
	}
	return into
}
