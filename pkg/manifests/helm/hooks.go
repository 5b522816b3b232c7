// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

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
	// maxWeight is as far as weights are told apart.
	maxWeight = 9999
	// beforeEnd and afterEnd are later than all hooks before, and after, the
	// ordinary objects.
	beforeEnd = beforeWave + maxWeight + 1
	afterEnd  = afterWave + maxWeight + 1

	// preDeleteRow and postDeleteRow tell the hooks of deletions apart from
	// others that would have to wait for each other.
	preDeleteRow  = 100_000
	postDeleteRow = 200_000

	// annotationRevision makes the manifest of a hook another one with every
	// revision, so that it runs again.
	annotationRevision = "helm.corbel.run/revision"
)

// moment is when a hook runs.
type moment struct {
	before, after         bool // the ordinary objects
	preDelete, postDelete bool
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
		}
	}
	return m
}

// hooks returns the objects that are hooks, with annotations that make them run
// when Helm would run them. Those of rollbacks and tests are left out: there is
// no rollback, and tests are run by people.
func (m marker) hooks(found []hook, current common.ReleaseOptions) ([]*unstructured.Unstructured, error) {
	running := slices.Clone(found)
	slices.SortStableFunc(running, func(a, b hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Name, b.Name))
	})
	wanted := map[*unstructured.Unstructured]bool{}
	var errs []error
	last := map[int]*unstructured.Unstructured{}
	for _, h := range running {
		for _, object := range h.objects {
			wave, runsNow, err := m.hook(h, object, current)
			errs = append(errs, err)
			wanted[object] = runsNow && err == nil
			if !wanted[object] || !runs(object) {
				continue
			}
			// Helm runs one after the other.
			if before := last[wave]; before != nil {
				m.set(object, v1alpha1.AnnotationDependsOn, reference(before))
			}
			last[wave] = object
		}
	}
	var objects []*unstructured.Unstructured
	for _, h := range found {
		objects = append(objects, slices.DeleteFunc(slices.Clone(h.objects), func(o *unstructured.Unstructured) bool { return !wanted[o] })...)
	}
	return objects, errors.Join(errs...)
}

// hook marks one object, and tells its wave and whether it is wanted.
func (m marker) hook(h hook, object *unstructured.Unstructured, current common.ReleaseOptions) (wave int, wanted bool, err error) {
	at := momentOf(h.Hook, current.IsInstall)
	succeeded := slices.Contains(h.DeletePolicies, release.HookSucceeded)
	applied, deleted := at.before || at.after, at.preDelete || at.postDelete
	if ever := applied || at.otherBefore || at.otherAfter; runs(object) && (at.before && at.after || at.preDelete && at.postDelete || ever && deleted) {
		return 0, false, fmt.Errorf("%s: hook %s %s: it runs at several times of one installation, upgrade or deletion (%v); make a hook for each of them", h.Path, h.Kind, h.Name, h.Events)
	}
	weight := min(max(h.Weight, -maxWeight), maxWeight)
	if !applied && !runs(object) && !succeeded {
		// What lasts stays in place.
		at.before, at.after = at.otherBefore, at.otherAfter
		applied = at.before || at.after
	}
	if object.GetKind() == "Pod" && runs(object) {
		m.set(object, v1alpha1.AnnotationReadyWhen, "self.status.phase == 'Succeeded'")
	}
	switch {
	case applied:
		wave = m.applied(object, at, weight, succeeded && !deleted, current)
	case at.preDelete:
		wave = preDeleteRow + weight
		m.set(object, v1alpha1.AnnotationRunOn, "pre-delete")
		m.set(object, v1alpha1.AnnotationApplyOrder, strconv.Itoa(weight))
	case at.postDelete:
		wave = postDeleteRow + weight
		m.set(object, v1alpha1.AnnotationRunOn, "post-delete")
		m.set(object, v1alpha1.AnnotationApplyOrder, strconv.Itoa(weight))
	default:
		return 0, false, nil
	}
	return wave, true, nil
}

// applied marks an object that is created before or after the ordinary ones.
func (m marker) applied(object *unstructured.Unstructured, at moment, weight int, succeeded bool, current common.ReleaseOptions) int {
	wave, end := beforeWave+weight, beforeEnd
	if at.after && !at.before {
		wave = afterWave + weight
	}
	if at.after {
		end = afterEnd
	}
	m.set(object, v1alpha1.AnnotationApplyOrder, strconv.Itoa(wave))
	if runs(object) {
		m.set(object, v1alpha1.AnnotationReconcilePolicy, "once-per-manifest")
		m.set(object, v1alpha1.AnnotationUpdatePolicy, "recreate")
	}
	if succeeded {
		m.set(object, v1alpha1.AnnotationPurgeOrder, strconv.Itoa(end))
	}
	if runs(object) || succeeded {
		annotations := object.GetAnnotations()
		annotations[annotationRevision] = strconv.Itoa(current.Revision)
		object.SetAnnotations(annotations)
	}
	return wave
}

// runs tells whether the object does its work and ends.
func runs(object *unstructured.Unstructured) bool {
	gvk := object.GroupVersionKind()
	return gvk.Group == "batch" && gvk.Kind == "Job" || gvk.Group == "" && gvk.Kind == "Pod"
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
