// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"encoding/base64"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/cluster"
)

// bundlePaths say where kinds keep the configuration of a client with a
// caBundle, which others, such as cert-manager, fill in. A list is walked, its
// elements are told apart by their names.
var bundlePaths = map[schema.GroupKind][]string{
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:               {"spec", "conversion", "webhook", "clientConfig"},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                           {"spec"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   {"webhooks", "clientConfig"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: {"webhooks", "clientConfig"},
}

// clientConfigs returns the configurations of clients in an object, by the name
// of the list element that they are in.
func clientConfigs(object map[string]any, path []string) map[string]map[string]any {
	if len(path) == 2 && path[0] == "webhooks" {
		configs := map[string]map[string]any{}
		webhooks, _ := object["webhooks"].([]any)
		for _, webhook := range webhooks {
			webhook, _ := webhook.(map[string]any)
			name, _ := webhook["name"].(string)
			if config := inner(webhook, "clientConfig"); config != nil {
				configs[name] = config
			}
		}
		return configs
	}
	if config := inner(object, path...); config != nil {
		return map[string]map[string]any{"": config}
	}
	return nil
}

func pathsOf(object map[string]any) []string {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	return bundlePaths[schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()]
}

// isEmptyBundle tells whether the configuration leaves the caBundle to others:
// it is missing, empty, or a placeholder that decodes to white space.
func isEmptyBundle(config map[string]any) bool {
	if skip, _ := config["insecureSkipTLSVerify"].(bool); skip {
		return false // a caBundle would be refused
	}
	text, _ := config["caBundle"].(string)
	decoded, err := base64.StdEncoding.DecodeString(text)
	return err == nil && strings.TrimSpace(string(decoded)) == ""
}

func hasEmptyBundle(manifest map[string]any) bool {
	for _, config := range clientConfigs(manifest, pathsOf(manifest)) {
		if isEmptyBundle(config) {
			return true
		}
	}
	return false
}

func carryBundles(body, live map[string]any) {
	liveConfigs := clientConfigs(live, pathsOf(live))
	for name, config := range clientConfigs(body, pathsOf(body)) {
		if !isEmptyBundle(config) {
			continue
		}
		delete(config, "caBundle")
		keepMissing(config, liveConfigs[name], "caBundle")
	}
}

// dropEmptyBundles removes what would make us the owner of an empty caBundle
// under server-side apply.
func dropEmptyBundles(resource cluster.Resource, body map[string]any) {
	for _, config := range clientConfigs(body, bundlePaths[resource.GVK().GroupKind()]) {
		if isEmptyBundle(config) {
			delete(config, "caBundle")
		}
	}
}
