// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"errors"
	"fmt"
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

// formerHooks are those that Helm 2 knew. Charts for all versions of Helm still have
// them, and later versions leave out what bears them.
var formerHooks = []release.HookEvent{"crd-install", "test-failure"}

// withoutFormerHooks leaves out the manifests that are hooks of Helm 2 only, as Helm
// does. Helm leaves out manifests with any other unknown hook as well: a hook whose name
// is misspelt never runs. That is an error here. It does not hold the unknown name, which
// may come from a value.
func withoutFormerHooks(name, text string) (string, error) {
	if !strings.Contains(text, release.HookAnnotation) {
		return text, nil
	}
	documents := releaseutil.SplitManifests(text)
	names := slices.SortedFunc(maps.Keys(documents), func(a, b string) int {
		if releaseutil.BySplitManifestsOrder([]string{a, b}).Less(0, 1) {
			return -1
		}
		return 1
	})
	var errs []error
	var rest strings.Builder
	removed := false
	for _, document := range names {
		former, err := hookOf(name, documents[document])
		errs = append(errs, err)
		if former {
			removed = true
			continue
		}
		rest.WriteString("---\n" + documents[document])
	}
	if err := errors.Join(errs...); err != nil || !removed {
		return text, err
	}
	return rest.String(), nil
}

// hookOf reports whether a document is a hook of Helm 2 only. A hook that no version of
// Helm knows is an error.
func hookOf(name, document string) (former bool, err error) {
	var head releaseutil.SimpleHead
	if err := yaml.Unmarshal([]byte(document), &head); err != nil || head.Metadata == nil {
		return false, nil // it is refused, or no hook
	}
	moments, isHook := head.Metadata.Annotations[release.HookAnnotation]
	if !isHook {
		return false, nil
	}
	for moment := range strings.SplitSeq(moments, ",") {
		event := release.HookEvent(strings.ToLower(strings.TrimSpace(moment)))
		switch {
		case slices.Contains(formerHooks, event):
			former = true
		case !slices.Contains(knownHooks, event):
			return false, fmt.Errorf("%s: %s %s: annotation %s has a value that Helm does not know, so the hook would never run; allowed are %s",
				name, head.Kind, head.Metadata.Name, release.HookAnnotation, joined(knownHooks))
		}
	}
	return former, nil
}

func joined(events []release.HookEvent) string {
	names := make([]string, len(events))
	for i, event := range events {
		names[i] = event.String()
	}
	return strings.Join(names, ", ")
}
