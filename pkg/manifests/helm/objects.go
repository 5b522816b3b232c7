// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// manifest is a document that a template gave.
type manifest struct {
	// objects is the object, or the items of a list.
	objects []*unstructured.Unstructured
	file    string
	// kind is that of the document, by which Helm orders.
	kind string
	hook *release.Hook // nil if it is none
}

// manifestsIn reads what a template gave. It splits the text where Helm does, which
// accepts texts that are no YAML as a whole. All mistakes are reported. Like Helm, it
// accepts keys that are set twice.
func manifestsIn(name, text string) ([]manifest, error) {
	texts := releaseutil.SplitManifests(text)
	found := make([]manifest, 0, len(texts))
	var errs []error
	for i := range len(texts) {
		// Without a line end a block of text at the end would lose its last one.
		document := texts[fmt.Sprint("manifest-", i)] + "\n"
		objects, err := manifests.Decode(name+" (rendered)", []byte(document), manifests.LastKeyWins)
		if err != nil {
			// Once more with the lines that it has in the whole text.
			before, _, _ := strings.Cut(text, strings.TrimSuffix(document, "\n"))
			lines := strings.Repeat("\n", strings.Count(before, "\n"))
			_, err = manifests.Decode(name+" (rendered)", []byte(lines+document), manifests.LastKeyWins)
		}
		if err != nil || len(objects) == 0 {
			errs = append(errs, err)
			continue
		}
		hook, former, err := hookOf(name, objects[0])
		errs = append(errs, err)
		if !former {
			found = append(found, manifest{objects: manifests.WithoutLists(objects), file: name, kind: objects[0].GetKind(), hook: hook})
		}
	}
	return found, errors.Join(errs...)
}

// knownHooks are the moments that Helm knows.
var knownHooks = []release.HookEvent{
	release.HookPreInstall, release.HookPostInstall, release.HookPreDelete, release.HookPostDelete, release.HookPreUpgrade,
	release.HookPostUpgrade, release.HookPreRollback, release.HookPostRollback, release.HookTest, formerTest,
}

// formerTest is what release.HookTest was called in Helm 2.
const formerTest release.HookEvent = "test-success"

// formerHooks are those that Helm 2 knew. Charts for all versions of Helm still have
// them, and later versions leave out what bears them.
var formerHooks = []release.HookEvent{"crd-install", "test-failure"}

// hookOf returns what an object says about itself as a hook, nil if it is none. It
// reports whether it is a hook of Helm 2 only, which Helm leaves out. Helm leaves out
// objects with any other unknown hook as well: a hook whose name is misspelt never runs.
// That is an error here. It does not hold the unknown name, which may come from a value.
func hookOf(file string, object *unstructured.Unstructured) (hook *release.Hook, former bool, err error) {
	annotations := object.GetAnnotations()
	moments, isHook := annotations[release.HookAnnotation]
	if !isHook {
		return nil, false, nil
	}
	hook = &release.Hook{Name: object.GetName(), Kind: object.GetKind(), Path: file}
	for _, moment := range words(moments) {
		event := release.HookEvent(moment)
		switch {
		case slices.Contains(formerHooks, event):
			former = true
		case !slices.Contains(knownHooks, event):
			return nil, false, fmt.Errorf("%s: %s %s: annotation %s has a value that Helm does not know, so the hook would never run; allowed are %s",
				file, object.GetKind(), object.GetName(), release.HookAnnotation, joined(knownHooks))
		}
		hook.Events = append(hook.Events, event)
	}
	if weight, err := strconv.Atoi(annotations[release.HookWeightAnnotation]); err == nil {
		hook.Weight = weight
	}
	if policies, given := annotations[release.HookDeleteAnnotation]; given {
		for _, policy := range words(policies) {
			hook.DeletePolicies = append(hook.DeletePolicies, release.HookDeletePolicy(policy))
		}
	}
	return hook, former, nil
}

// words splits a list as Helm does, which ignores the case.
func words(list string) []string {
	all := strings.Split(list, ",")
	for i, word := range all {
		all[i] = strings.ToLower(strings.TrimSpace(word))
	}
	return all
}

func joined(events []release.HookEvent) string {
	names := make([]string, len(events))
	for i, event := range events {
		names[i] = event.String()
	}
	return strings.Join(names, ", ")
}

// places are the kinds that Helm installs in an order of its own.
var places = func() map[string]int {
	places := map[string]int{}
	for i, kind := range releaseutil.InstallOrder {
		places[kind] = i
	}
	return places
}()

// byKind compares manifests by the order in which Helm installs them: kinds that it
// does not know come last, in the order of their names.
func byKind(a, b manifest) int {
	first, knownA := places[a.kind]
	second, knownB := places[b.kind]
	switch {
	case knownA && knownB:
		return cmp.Compare(first, second)
	case knownA:
		return -1
	case knownB:
		return 1
	}
	return cmp.Compare(a.kind, b.kind)
}
