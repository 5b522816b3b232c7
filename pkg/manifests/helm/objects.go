// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/internal/jsonsize"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests/internal/cache"
)

// manifest is a document that a template gave.
type manifest struct {
	// objects is the object, or the items of a list.
	objects []*unstructured.Unstructured
	file    string
	// kind is the kind of the document, by which Helm orders.
	kind string
	hook *release.Hook // nil if it is none
}

// manifestsIn reads the output of a template. It splits the text where Helm does, which accepts
// texts that are no YAML as a whole. All mistakes are reported. Like Helm, it accepts keys that are
// set twice.
func manifestsIn(name, text string) ([]manifest, error) {
	texts := releaseutil.SplitManifests(text)
	found := make([]manifest, 0, len(texts))
	var errs []error
	asHelm := document.Options{LastKeyWins: true}
	for i := range len(texts) {
		// Without a line end a block of text at the end would lose its last one.
		rendered := texts[fmt.Sprint("manifest-", i)] + "\n"
		objects, err := asHelm.Decode(name+" (rendered)", []byte(rendered))
		if err != nil {
			// Once more with the lines that it has in the whole text.
			before, _, _ := strings.Cut(text, strings.TrimSuffix(rendered, "\n"))
			lines := strings.Repeat("\n", strings.Count(before, "\n"))
			_, err = asHelm.Decode(name+" (rendered)", []byte(lines+rendered))
		}
		if err != nil || len(objects) == 0 {
			errs = append(errs, err)
			continue
		}
		hook, former, err := hookOf(name, objects[0])
		errs = append(errs, err)
		if !former {
			found = append(found, manifest{objects: document.WithoutLists(objects), file: name, kind: objects[0].GetKind(), hook: hook})
		}
	}
	return found, errors.Join(errs...)
}

// knownHooks are the moments that Helm knows.
var knownHooks = []release.HookEvent{
	release.HookPreInstall, release.HookPostInstall, release.HookPreDelete, release.HookPostDelete, release.HookPreUpgrade,
	release.HookPostUpgrade, release.HookPreRollback, release.HookPostRollback, release.HookTest, formerTest,
}

// formerTest is the name of release.HookTest in Helm 2.
const formerTest release.HookEvent = "test-success"

// formerHooks are the hooks that only Helm 2 knew. Charts for all versions of Helm still have them,
// and later versions leave out the objects with them.
var formerHooks = []release.HookEvent{"crd-install", "test-failure"}

// hookOf returns an object as a hook, nil if it is none. It reports whether it is a hook of Helm 2
// only, which Helm leaves out. Helm leaves out objects with any other unknown hook as well: a hook
// with a misspelt name never runs. That is an error here. It does not hold the unknown name, which
// may come from a value.
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

const (
	// maxTexts and maxTextBytes limit the texts that a generator keeps the objects of.
	maxTexts     = 2000
	maxTextBytes = 32 << 20
)

// notes is the text that Helm shows after an installation. They are rendered, because charts check
// their values there, and then thrown away.
const notes = "NOTES.txt"

// rendered are the objects of a chart, in the order in which Helm prints them.
type rendered struct {
	crds      []*unstructured.Unstructured
	manifests []templated
	hooks     []hook
}

// templated is an object with the template that it comes from.
type templated struct {
	*unstructured.Unstructured
	file string
}

// hook is an object with its place in the life of a release.
type hook struct {
	*release.Hook
	objects []*unstructured.Unstructured
}

// read returns the objects in the outputs of the templates, in the order of Helm. Each text is
// parsed once, as long as it is kept; components of one chart have most texts in common. All
// mistakes are reported.
func (g *generator) read(ctx context.Context, outputs map[string]string) (rendered, error) {
	var found []manifest
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		text := outputs[name]
		if strings.HasSuffix(name, notes) || strings.HasPrefix(path.Base(name), "_") || strings.TrimSpace(text) == "" {
			continue
		}
		parsed, err := g.parsed(name, text, manifestsIn)
		found, errs = append(found, parsed...), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return rendered{}, err
	}
	slices.SortStableFunc(found, byKind)
	var result rendered
	for _, m := range found {
		objects := copies(ctx, m)
		if m.hook != nil {
			result.hooks = append(result.hooks, hook{Hook: m.hook, objects: objects})
			continue
		}
		for _, object := range objects {
			result.manifests = append(result.manifests, templated{Unstructured: object, file: m.file})
		}
	}
	return result, nil
}

// parsed returns the objects of a file. They must not be changed.
func (g *generator) parsed(name, text string, parse func(name, text string) ([]manifest, error)) ([]manifest, error) {
	key := cache.KeyOf(map[string]string{name: text})
	found, ok := g.texts.Get(key)
	if ok {
		return found, nil
	}
	found, err := parse(name, text)
	if err == nil {
		g.texts.Put(key, found, int64(len(text))+memoryOf(found))
	}
	return found, err
}

// memoryOf estimates the size of objects in memory. With aliases it is much more than their text.
func memoryOf(parsed []manifest) (bytes int64) {
	const perByte = 4 // of JSON: maps and interfaces take several times their text
	for _, m := range parsed {
		for _, object := range m.objects {
			bytes += perByte * int64(jsonsize.Of(object.Object, math.MaxInt32))
		}
	}
	return bytes
}

// copies returns objects that may be changed, and notes their origin.
func copies(ctx context.Context, m manifest) []*unstructured.Unstructured {
	copied := make([]*unstructured.Unstructured, len(m.objects))
	for i, object := range m.objects {
		copied[i] = object.DeepCopy()
		renders.NoteOrigin(ctx, copied[i], m.file)
	}
	return copied
}

// readCRDs reads the folders crds of the chart and its sub-charts.
func (g *generator) readCRDs(ctx context.Context, c *chart.Chart) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	var errs []error
	for _, crd := range c.CRDObjects() {
		found, err := g.parsed(crd.Filename, string(crd.File.Data), crdsIn)
		errs = append(errs, err)
		for _, m := range found {
			all = append(all, copies(ctx, m)...)
		}
	}
	return all, errors.Join(errs...)
}

func crdsIn(name, text string) ([]manifest, error) {
	objects, err := document.Decode(name, []byte(text))
	return []manifest{{objects: document.WithoutLists(objects), file: name}}, err
}
