// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"maps"
	"slices"
	"strings"

	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/yaml"
)

// knownHooks are the moments that Helm knows.
var knownHooks = []release.HookEvent{
	release.HookPreInstall, release.HookPostInstall, release.HookPreDelete, release.HookPostDelete, release.HookPreUpgrade,
	release.HookPostUpgrade, release.HookPreRollback, release.HookPostRollback, release.HookTest, "test-success",
}

// withoutUnknownHooks leaves out the manifests that are hooks for moments which
// Helm does not know. Helm does so, too, but logs what their annotation says.
func withoutUnknownHooks(text string) string {
	if !strings.Contains(text, release.HookAnnotation) {
		return text
	}
	documents := releaseutil.SplitManifests(text)
	names := slices.SortedFunc(maps.Keys(documents), func(a, b string) int {
		if releaseutil.BySplitManifestsOrder([]string{a, b}).Less(0, 1) {
			return -1
		}
		return 1
	})
	known := slices.DeleteFunc(names, func(name string) bool { return isUnknownHook(documents[name]) })
	if len(known) == len(documents) {
		return text
	}
	var rest strings.Builder
	for _, name := range known {
		rest.WriteString("---\n" + documents[name])
	}
	return rest.String()
}

func isUnknownHook(document string) bool {
	var head releaseutil.SimpleHead
	if err := yaml.Unmarshal([]byte(document), &head); err != nil || head.Metadata == nil {
		return false // it is refused, or no hook
	}
	moments, isHook := head.Metadata.Annotations[release.HookAnnotation]
	return isHook && slices.ContainsFunc(strings.Split(moments, ","), func(moment string) bool {
		return !slices.Contains(knownHooks, release.HookEvent(strings.ToLower(strings.TrimSpace(moment))))
	})
}
