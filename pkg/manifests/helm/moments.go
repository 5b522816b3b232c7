// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"

	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// applied tells whether the hook is for installations or upgrades.
func (m moment) applied() bool { return m.before || m.after || m.otherBefore || m.otherAfter }

// run is one time that an object is applied.
type run struct {
	object *unstructured.Unstructured
	at     moment
}

// maxName is how long the name of a Job may be.
const maxName = 63

// runsOf returns when an object is applied. One that does its work and ends runs
// at each of its moments. Helm gives all these runs one name, one after the other;
// here they are objects side by side, so the later ones get a name of their own,
// the same in each revision.
func runsOf(h hook, object *unstructured.Unstructured, at moment) ([]run, error) {
	if !runs(object) {
		return []run{{object, at}}, nil
	}
	var found []run
	var err error
	add := func(wanted bool, at moment, suffix string) {
		if !wanted {
			return
		}
		named := object
		if suffix != "" {
			named = object.DeepCopy()
			named.SetName(object.GetName() + suffix)
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
	return found, err
}

// runs tells whether the object does its work and ends.
func runs(object *unstructured.Unstructured) bool {
	gvk := object.GroupVersionKind()
	return gvk.Group == "batch" && gvk.Kind == "Job" || gvk.Group == "" && gvk.Kind == "Pod"
}
