// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

const (
	// beforeWave and afterWave are the waves of hooks of weight 0. Ordinary
	// objects are somewhere between them.
	beforeWave = -20000
	afterWave  = 20000
	// maxWeight is as far as weights are distinguished.
	//
	// Limit: the weight of a hook up to which weights are distinguished, also below zero.
	maxWeight = 9999
	// beforeEnd and afterEnd are later than all hooks before, and after, the
	// ordinary objects.
	beforeEnd = beforeWave + maxWeight + 1
	afterEnd  = afterWave + maxWeight + 1

	// preDeleteRow, postDeleteRow and rollbackRow distinguish the hooks of deletions and rollbacks
	// from other hooks that would have to wait for each other.
	preDeleteRow  = 100_000
	postDeleteRow = 200_000
	rollbackRow   = 300_000

	// annotationRevision is the revision that a hook of a chart runs for. It makes the manifest of
	// the hook another one with every revision, as earlier versions recorded it.
	//
	// On: hooks of charts
	// Set by: package helm
	// Format: the number of a revision
	// Example: helm.corbel.run/revision: "7"
	annotationRevision = "helm.corbel.run/revision"
)

// hooks returns the objects that are hooks, with annotations that make them run when Helm would run
// them. Hooks of tests are left out, because people run tests, and hooks of rollbacks, unless the
// caller keeps the rendered objects for a rollback.
func (m marker) hooks(found []hook, current common.ReleaseOptions) ([]templated, error) {
	running := slices.Clone(found)
	slices.SortStableFunc(running, func(a, b hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Name, b.Name))
	})
	applied := map[*unstructured.Unstructured][]templated{}
	var errs []error
	last := map[int]*unstructured.Unstructured{}
	for _, h := range running {
		for _, object := range h.objects {
			at := momentOf(h.Hook, current.IsInstall)
			at.preRollback, at.postRollback = at.preRollback && m.rollbackHooks, at.postRollback && m.rollbackHooks
			all, err := runsOf(h, object, at)
			errs = append(errs, err)
			for _, r := range all {
				wave, included := m.hook(h, r, current)
				if !included {
					continue
				}
				applied[object] = append(applied[object], templated{Unstructured: r.object, file: h.Path})
				if !runs(object) {
					continue
				}
				// Helm runs one after the other.
				if before := last[wave]; before != nil {
					m.set(r.object, v1alpha1.AnnotationDependsOn, reference(before))
				}
				last[wave] = r.object
			}
		}
	}
	var objects []templated
	for _, h := range found {
		for _, object := range h.objects {
			objects = append(objects, applied[object]...)
		}
	}
	return objects, errors.Join(errs...)
}

// hook annotates one run of an object, and returns its wave, and whether it is included.
func (m marker) hook(h hook, r run, current common.ReleaseOptions) (wave int, included bool) {
	succeeded := slices.Contains(h.DeletePolicies, release.HookSucceeded)
	weight := min(max(h.Weight, -maxWeight), maxWeight)
	if r.object.GetKind() == "Pod" && runs(r.object) {
		m.set(r.object, v1alpha1.AnnotationReadyWhen, "self.status.phase == 'Succeeded'")
	}
	deleted := r.at.preDelete || r.at.postDelete
	switch {
	case r.at.before || r.at.after:
		return m.applied(r, weight, succeeded && !deleted, current), true
	case r.at.otherBefore || r.at.otherAfter:
		if current.IsInstall || runs(r.object) || succeeded {
			break
		}
		// An object that an installation created stays as it is.
		m.set(r.object, v1alpha1.AnnotationReconcilePolicy, "once")
		return m.applied(run{r.object, moment{before: r.at.otherBefore, after: r.at.otherAfter}}, weight, false, current), true
	}
	switch {
	case r.at.preDelete:
		m.deleted(r, "pre-delete", weight)
		return preDeleteRow + weight, true
	case r.at.postDelete:
		m.deleted(r, "post-delete", weight)
		return postDeleteRow + weight, true
	case r.at.preRollback || r.at.postRollback:
		m.set(r.object, v1alpha1.AnnotationRunOn, "rollback")
		wave := m.applied(run{r.object, moment{before: r.at.preRollback, after: r.at.postRollback}}, weight, succeeded, current)
		return rollbackRow + wave, true
	}
	return 0, false
}

func (m marker) deleted(r run, on string, weight int) {
	m.set(r.object, v1alpha1.AnnotationRunOn, on)
	m.set(r.object, v1alpha1.AnnotationApplyOrder, strconv.Itoa(weight))
}

// applied annotates an object that is created before or after the ordinary ones.
func (m marker) applied(r run, weight int, succeeded bool, current common.ReleaseOptions) int {
	wave, end := beforeWave+weight, beforeEnd
	if r.at.after && !r.at.before {
		wave = afterWave + weight
	}
	if r.at.after {
		end = afterEnd
	}
	m.set(r.object, v1alpha1.AnnotationApplyOrder, strconv.Itoa(wave))
	if runs(r.object) {
		m.set(r.object, v1alpha1.AnnotationReconcilePolicy, "once-per-manifest")
		m.set(r.object, v1alpha1.AnnotationUpdatePolicy, "recreate")
	}
	if succeeded {
		m.set(r.object, v1alpha1.AnnotationPurgeOrder, strconv.Itoa(end))
	}
	if runs(r.object) || succeeded {
		revision := strconv.Itoa(current.Revision)
		m.set(r.object, v1alpha1.AnnotationRevision, revision)
		annotations := r.object.GetAnnotations()
		annotations[annotationRevision] = revision
		r.object.SetAnnotations(annotations)
	}
	return wave
}

// reference names an object in the annotation depends-on.
func reference(object *unstructured.Unstructured) string {
	gvk := object.GroupVersionKind()
	text := gvk.Kind + "/"
	if gvk.Group != "" {
		text = gvk.Group + "/" + text
	}
	if namespace := object.GetNamespace(); namespace != "" {
		text += namespace + "/"
	}
	return text + object.GetName()
}

// moment is when a hook runs.
type moment struct {
	before, after         bool // the ordinary objects
	preDelete, postDelete bool
	// preRollback and postRollback are before and after the ordinary objects of a rollback.
	preRollback, postRollback bool
	// otherBefore and otherAfter are the same for an upgrade if this is the
	// installation, and the other way round.
	otherBefore, otherAfter bool
}

func momentOf(h *release.Hook, install bool) moment {
	var m moment
	for _, event := range h.Events {
		switch event {
		case release.HookPreInstall, release.HookPreUpgrade:
			now := install == (event == release.HookPreInstall)
			m.before, m.otherBefore = m.before || now, m.otherBefore || !now
		case release.HookPostInstall, release.HookPostUpgrade:
			now := install == (event == release.HookPostInstall)
			m.after, m.otherAfter = m.after || now, m.otherAfter || !now
		case release.HookPreDelete:
			m.preDelete = true
		case release.HookPostDelete:
			m.postDelete = true
		case release.HookPreRollback:
			m.preRollback = true
		case release.HookPostRollback:
			m.postRollback = true
		}
	}
	return m
}

// applied reports whether the hook is for installations or upgrades.
func (m moment) applied() bool { return m.before || m.after || m.otherBefore || m.otherAfter }

// run is one time that an object is applied.
type run struct {
	object *unstructured.Unstructured
	at     moment
}

// maxName is how long the name of a Job may be.
const maxName = 63

// runsOf returns when an object is applied. An object that does its work and ends runs at each of
// its moments. Helm gives all these runs one name, one after the other; here they are objects side
// by side, so the later ones get a name of their own, the same in each revision.
func runsOf(h hook, object *unstructured.Unstructured, at moment) ([]run, error) {
	if !runs(object) {
		return []run{{object, at}}, nil
	}
	var found []run
	var err error
	add := func(included bool, at moment, suffix string) {
		if !included {
			return
		}
		named := object
		if suffix != "" {
			named = object.DeepCopy()
			named.SetName(object.GetName() + suffix)
		}
		if at.preRollback || at.postRollback {
			// Rollback hooks are kept beside the other hooks, which must not fail because of their
			// names.
			named.SetName(shortened(named.GetName()))
		}
		if len(named.GetName()) > maxName && suffix != "" {
			err = fmt.Errorf("%s: hook %s %s runs at several moments (%v), so that one of its runs is called %s; that is longer than %d characters, shorten the name",
				h.Path, h.Kind, object.GetName(), h.Events, named.GetName(), maxName)
		}
		found = append(found, run{named, at})
	}
	suffix := func(needed bool, suffix string) string {
		if needed {
			return suffix
		}
		return ""
	}
	add(at.before, moment{before: true}, "")
	add(at.after, moment{after: true}, suffix(at.before && at.after || at.otherBefore && at.otherAfter, "-post"))
	add(at.preDelete, moment{preDelete: true}, suffix(at.applied(), "-pre-delete"))
	add(at.postDelete, moment{postDelete: true}, suffix(at.applied() || at.preDelete, "-post-delete"))
	others := at.applied() || at.preDelete || at.postDelete
	add(at.preRollback, moment{preRollback: true}, suffix(others, "-pre-rollback"))
	add(at.postRollback, moment{postRollback: true}, suffix(others || at.preRollback, "-post-rollback"))
	return found, err
}

// shortened returns a name that is not too long, and another one for each name.
func shortened(name string) string {
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	end := "-" + hex.EncodeToString(sum[:4])
	return strings.TrimRight(name[:maxName-len(end)], ".-") + end
}

// runs reports whether the object does its work and ends.
func runs(object *unstructured.Unstructured) bool {
	gvk := object.GroupVersionKind()
	return gvk.Group == "batch" && gvk.Kind == "Job" || gvk.Group == "" && gvk.Kind == "Pod"
}
