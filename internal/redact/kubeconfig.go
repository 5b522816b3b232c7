// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
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
	var document yaml.Node
	if yaml.Unmarshal([]byte(text), &document) == nil {
		parts = secretLeaves(&document, parts)
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

// secretLeaves are the leaves that do not stand in public fields. Aliases are not
// followed: what they stand for is among the leaves, and to expand them may take all
// memory.
func secretLeaves(node *yaml.Node, into []string) []string {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			field, child := node.Content[i], node.Content[i+1]
			if child.Kind != yaml.ScalarNode || !slices.Contains(publicFields, field.Value) {
				into = secretLeaves(child, into)
			}
		}
	case yaml.DocumentNode, yaml.SequenceNode:
		for _, child := range node.Content {
			into = secretLeaves(child, into)
		}
	case yaml.ScalarNode:
		if node.ShortTag() == "!!str" {
			into = append(into, node.Value)
		}
	}
	return into
}
