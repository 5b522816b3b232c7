// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/test/check"
)

// updateStories change the manifest of an object in which kubectl has set a field, and of an object that cannot be changed.
func updateStories() (stories []story) {
	for _, policy := range []struct {
		name                    string
		extra                   string // what is left of the field
		keepsUID, replacesFixed bool
	}{
		{name: "replace", keepsUID: true},
		{name: "ssa-merge", extra: "theirs", keepsUID: true},
		{name: "ssa-override", keepsUID: true},
		{name: "recreate", replacesFixed: true},
		{name: "recreate-on-immutable", keepsUID: true, replacesFixed: true},
	} {
		fixed := func(version string) string {
			return configMap("fixed", version, "update-policy", policy.name) + "immutable: true\n"
		}
		stories = append(stories, story{"update-policy " + policy.name, func(t testing.TB, c *cluster) {
			s := install(t, c.operator(), content{"open": configMap("open", "1", "update-policy", policy.name), "fixed": fixed("1")}.component())
			s.interfere("open", "extra", "theirs")
			before := s.get("open").UID
			s.Edit(t, content{"open": configMap("open", "2", "update-policy", policy.name)}.with)
			s.has("open", "2")
			s.hasField("open", "extra", policy.extra)
			check.SameNamed(t, "the object is the same", policy.keepsUID, s.get("open").UID == before)

			before = s.get("fixed").UID
			if policy.replacesFixed {
				s.Edit(t, content{"fixed": fixed("2")}.with)
				s.has("fixed", "2")
				check.SameNamed(t, "the immutable object is the same", false, s.get("fixed").UID == before)
			} else {
				s.propose(content{"fixed": fixed("2")}.with)
				s.awaitReason(vocabulary.ReasonError, "ConfigMap "+s.Namespace+"/fixed", "immutable")
				s.Edit(t, content{"fixed": fixed("1")}.with)
				check.SameNamed(t, "the immutable object is the same", true, s.get("fixed").UID == before)
			}
			s.Delete(t)
		}})
	}
	return stories
}

// objectStories change an object as another client, change its manifest, drop it, and delete the component with another
// object of the same policy. What is left is a version, or nothing.
func objectStories() (stories []story) {
	for _, policy := range []struct{ name, value, afterDrift, afterEdit, afterDrop, afterDelete string }{
		{"reconcile-policy", "on-object-change", "1", "2", "", ""},
		{"reconcile-policy", "on-object-or-component-change", "1", "2", "", ""},
		{"reconcile-policy", "once", "theirs", "theirs", "", ""},
		{"reconcile-policy", "once-per-manifest", "theirs", "2", "", ""},
		{"drift-policy", "repair", "1", "2", "", ""},
		{"drift-policy", "report", "theirs", "2", "", ""},
		{"drift-policy", "ignore", "theirs", "2", "", ""},
		{"delete-policy", "delete", "1", "2", "", ""},
		{"delete-policy", "orphan", "1", "2", "2", "1"},
		{"delete-policy", "orphan-on-apply", "1", "2", "2", ""},
		{"delete-policy", "orphan-on-delete", "1", "2", "", "1"},
		{"management-policy", "manage", "1", "2", "", ""},
		{"management-policy", "detach-on-delete", "1", "2", "", "1"},
	} {
		stories = append(stories, story{policy.name + " " + policy.value, func(t testing.TB, c *cluster) {
			some := func(version string) string { return configMap("some", version, policy.name, policy.value) }
			w := content{"some": some("1"), "last": configMap("last", "1", policy.name, policy.value)}.component()
			if policy.name == "management-policy" { // it counts for the component
				w.Annotations = map[string]string{group + "/" + policy.name: policy.value}
			}
			s := install(t, c.operator("ConfigMap some", "ConfigMap last"), w)
			s.interfere("some", "version", "theirs")
			s.Edit(t, func(*widget.Widget) {}) // it asks for a reconcile, and waits for it
			s.has("some", policy.afterDrift)
			s.Edit(t, content{"some": some("2")}.with)
			s.has("some", policy.afterEdit)
			s.Edit(t, content{"some": ""}.with)
			s.has("some", policy.afterDrop)
			s.Delete(t)
			s.has("last", policy.afterDelete)
			for _, name := range []string{"some", "last"} {
				check.SameNamed(t, "the label of the owner of ConfigMap "+name, "", s.get(name).Labels[group+"/"+vocabulary.LabelOwnerID])
			}
		}})
	}
	return stories
}

// adoptionStories desire objects that exist: one without an owner, and one of a Helm release.
func adoptionStories() (stories []story) {
	for _, policy := range []struct {
		name                           string
		adoptsFree, adoptsOwned, waits bool
	}{
		{name: "if-unowned", adoptsFree: true, waits: true},
		{name: "never", waits: true},
		{name: "always", adoptsFree: true, adoptsOwned: true},
		{name: "ignore"},
	} {
		stories = append(stories, story{"adoption-policy " + policy.name, func(t testing.TB, c *cluster) {
			var retained []string
			if policy.name == "ignore" {
				retained = []string{"ConfigMap free", "ConfigMap owned"}
			}
			s := install(t, c.operator(retained...), content{"own": configMap("own", "1")}.component())
			create := func(name string, annotations map[string]string) *corev1.ConfigMap {
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Annotations: annotations}, Data: map[string]string{"version": "0"}}
				check.NoError(t, c.client.Create(t.Context(), object))
				return object
			}
			free, owned := create("free", nil), create("owned", map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": s.Namespace})
			desired := content{"free": configMap("free", "1", "adoption-policy", policy.name), "owned": configMap("owned", "1", "adoption-policy", policy.name)}
			if policy.waits {
				s.propose(desired.with)
				s.awaitReason(vocabulary.ReasonOwnerConflict, "ConfigMap "+s.Namespace)
			} else {
				s.Edit(t, desired.with)
			}
			for _, object := range []struct {
				*corev1.ConfigMap
				adopted bool
			}{{free, policy.adoptsFree}, {owned, policy.adoptsOwned}} {
				now := s.get(object.Name)
				check.SameNamed(t, "the uid of ConfigMap "+object.Name, object.UID, now.UID)
				check.SameNamed(t, "ConfigMap "+object.Name+" is adopted", object.adopted, now.Data["version"] == "1" && now.Labels[group+"/"+vocabulary.LabelOwnerID] != "")
				check.SameNamed(t, "ConfigMap "+object.Name+" is untouched", !object.adopted, now.ResourceVersion == object.ResourceVersion)
				if policy.waits && !object.adopted {
					check.NoError(t, c.client.Delete(t.Context(), object.ConfigMap))
				}
			}
			s.Edit(t, func(*widget.Widget) {}) // what was in the way is gone
			s.Delete(t)
			for _, name := range []string{"free", "owned"} {
				check.SameNamed(t, "ConfigMap "+name+" stays", policy.name == "ignore", s.get(name).UID != "")
			}
		}})
	}
	return stories
}

// namespaceStories put an object into a namespace that does not exist.
func namespaceStories() (stories []story) {
	for _, policy := range vocabulary.MissingNamespacesPolicies {
		stories = append(stories, story{"missingNamespacesPolicy " + string(policy), func(t testing.TB, c *cluster) {
			s := install(t, c.operator(), content{"own": configMap("own", "1")}.component())
			elsewhere := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-elsewhere"}}
			edit := func(w *widget.Widget) {
				w.Spec.Namespace, w.Spec.MissingNamespacesPolicy = elsewhere.Name, policy
				content{"guest": configMap("guest", "1")}.with(w)
			}
			creates := policy == v1alpha1.MissingNamespacesPolicyCreate
			if creates {
				s.Edit(t, edit)
			} else {
				s.propose(edit)
				s.awaitReason(vocabulary.ReasonError, elsewhere.Name)
				check.NoError(t, c.client.Create(t.Context(), elsewhere))
				s.Edit(t, func(*widget.Widget) {})
			}
			key := client.ObjectKey{Namespace: elsewhere.Name, Name: "guest"}
			check.NoError(t, c.client.Get(t.Context(), key, &corev1.ConfigMap{}))
			s.Delete(t)
			check.SameNamed(t, "the ConfigMap is gone", true, isGone(c.client.Get(t.Context(), key, &corev1.ConfigMap{})))
			check.SameNamed(t, "the namespace is gone", creates, isGone(c.client.Get(t.Context(), client.ObjectKeyFromObject(elsewhere), elsewhere)))
		}})
	}
	return stories
}

// isGone reports whether a read has found no object.
func isGone(err error) bool { return err != nil && client.IgnoreNotFound(err) == nil }
