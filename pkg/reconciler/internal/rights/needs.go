// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"cmp"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// Right is the right to one verb on one resource. An empty namespace means all of them;
// an empty name means any object.
type Right struct{ Group, Resource, Namespace, Verb, Name string }

// Grant is a Role or ClusterRole that is written, or a binding to one. The server accepts
// it from a user that holds all of its rules, or the right escalate or bind on the role.
type Grant struct {
	// Right is the right to escalate or to bind.
	Right Right
	// Namespace is where the rules have to be held; empty means the whole cluster.
	Namespace string
	Rules     []rbacv1.PolicyRule
}

// Needs are the rights that a set of objects requires.
type Needs struct {
	// Rights are true if something fails without them. Without the others, objects are
	// read one by one, and drift is noticed late.
	Rights map[Right]bool
	// Names are the objects of a type in a namespace, for rights that are
	// restricted to some of them. The keys have neither verb nor name.
	Names  map[Right][]string
	Grants []Grant
}

// Context is what the rights depend on beside the input of a plan.
type Context struct {
	// Known returns how objects of a type are addressed. Types that are not known yet
	// are left out.
	Known func(schema.GroupVersionKind) (cluster.Resource, bool)
	// Watched: objects are watched.
	Watched bool
	// Refused are the objects with a last write that was forbidden, and the namespaces
	// that do not exist and may not be read.
	Refused map[plan.Key]bool
}

// Of returns the rights to bring the cluster to the desired objects, and to
// remove them and those that are recorded.
func Of(in plan.Input, c Context) Needs {
	n := Needs{Rights: map[Right]bool{}, Names: map[Right][]string{}}
	recorded := make(map[plan.Key]*v1alpha1.InventoryItem, len(in.Recorded))
	for i := range in.Recorded {
		recorded[plan.KeyOf(in.Recorded[i])] = &in.Recorded[i]
	}
	roles := rolesOf(in.Desired)
	var verbs [8]string
	for i := range in.Desired {
		d := &in.Desired[i]
		item := recorded[d.Key]
		delete(recorded, d.Key)
		n.add(c, d.Key, d.Version, appendVerbs(verbs[:0], d))
		if len(d.Defines) > 0 {
			n.addInstances(d)
		}
		if d.Key.Group == rbacv1.GroupName && (item == nil || item.Digest != d.Digest) {
			n.addGrant(d, roles, in.Live[d.Key].Existence, c.Refused[d.Key])
		}
	}
	for key, item := range recorded {
		n.add(c, key, item.Version, appendRemoval(append(verbs[:0], "get"), item.DeletePolicy))
	}
	if in.MissingNamespaces != v1alpha1.MissingNamespacesPolicyDoNotCreate {
		for key, live := range in.Live {
			// One that may not be read exists, unless the server says that it does not.
			if key.Group == "" && key.Kind == "Namespace" && (live.Existence == plan.Absent || c.Refused[key]) {
				n.add(c, key, "v1", []string{"get", "create", "patch", "delete"})
			}
		}
	}
	return n
}

// appendVerbs appends the verbs that an object needs in its life.
func appendVerbs(verbs []string, d *plan.Desired) []string {
	verbs = append(verbs, "get", "create")
	switch {
	case d.Policies.Applies():
		verbs = append(verbs, "patch")
	case d.Policies.Recreates():
		verbs = append(verbs, "update", "delete")
	default:
		verbs = append(verbs, "update")
	}
	if d.Policies.Adoption == v1alpha1.AdoptionPolicyAlways || len(d.Policies.AdoptFrom) > 0 || d.Policies.ToleratesDrift() {
		verbs = append(verbs, "patch") // of the label and annotation of a former owner, or of ours
	}
	return appendRemoval(verbs, d.Policies.Delete)
}

// appendRemoval appends those by which an object is deleted or orphaned.
func appendRemoval(verbs []string, p v1alpha1.DeletePolicy) []string {
	onApply, onDelete := policy.OrphansOnApply(p), policy.OrphansOnDelete(p)
	if onApply || onDelete {
		verbs = append(verbs, "patch")
	}
	if onApply && onDelete {
		return verbs
	}
	return append(verbs, "delete")
}

func (n *Needs) add(c Context, key plan.Key, version string, verbs []string) {
	resource, known := c.Known(key.GroupKind().WithVersion(version))
	if !known || resource.Namespaced != (key.Namespace != "") {
		return
	}
	right := Right{Group: resource.GVR.Group, Resource: resource.GVR.Resource, Namespace: key.Namespace}
	n.Names[right] = append(n.Names[right], key.Name)
	for _, right.Verb = range verbs {
		n.Rights[right] = true
	}
	if !c.Watched {
		return
	}
	for _, right.Verb = range []string{"list", "watch"} {
		if _, needed := n.Rights[right]; !needed {
			n.Rights[right] = false
		}
	}
}

// addInstances adds the right to look for instances of a type before it is deleted.
func (n *Needs) addInstances(definition *plan.Desired) {
	manifest := definition.Unpacked().Manifest
	if manifest == nil || definition.Key.Kind != "CustomResourceDefinition" {
		return
	}
	group, _, _ := unstructured.NestedString(manifest.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(manifest.Object, "spec", "names", "plural")
	n.Rights[Right{Group: group, Resource: plural, Verb: "list"}] = true
}

// role identifies a Role, or a ClusterRole if the namespace is empty.
type role struct{ namespace, name string }

func (r role) resource() string {
	if r.namespace == "" {
		return "clusterroles"
	}
	return "roles"
}

// rolesOf returns the rules of the roles among the objects.
func rolesOf(objects []plan.Desired) map[role][]rbacv1.PolicyRule {
	rules := map[role][]rbacv1.PolicyRule{}
	for i := range objects {
		d := &objects[i]
		if d.Key.Group != rbacv1.GroupName || d.Key.Kind != "Role" && d.Key.Kind != "ClusterRole" {
			continue
		}
		content := &rbacv1.ClusterRole{}
		if decode(d, content) && content.AggregationRule != nil {
			// What will be aggregated is not known, so the server asks for everything.
			all := []string{"*"}
			content.Rules = []rbacv1.PolicyRule{{APIGroups: all, Resources: all, Verbs: all}, {NonResourceURLs: all, Verbs: all}}
		}
		rules[role{d.Key.Namespace, d.Key.Name}] = content.Rules
	}
	return rules
}

// addGrant adds the rights to write a role or a binding. A binding to a role that is
// not among the objects counts only if the server refused it: the rules of that
// role are not known.
//
// The server checks escalate with the name in the request, which a creation does not have,
// and bind with the name of the role.
func (n *Needs) addGrant(d *plan.Desired, roles map[role][]rbacv1.PolicyRule, existence plan.Existence, refused bool) {
	where := d.Key.Namespace
	switch d.Key.Kind {
	case "Role", "ClusterRole":
		own := role{where, d.Key.Name}
		right := Right{Group: rbacv1.GroupName, Resource: own.resource(), Namespace: where, Verb: "escalate"}
		if existence == plan.Present {
			right.Name = own.name
		}
		n.Grants = append(n.Grants, Grant{Namespace: where, Rules: roles[own], Right: right})
	case "RoleBinding", "ClusterRoleBinding":
		binding := &rbacv1.RoleBinding{}
		if !decode(d, binding) {
			return
		}
		bound := role{where, binding.RoleRef.Name}
		if binding.RoleRef.Kind == "ClusterRole" {
			bound.namespace = ""
		}
		rules, known := roles[bound]
		if !known && !refused {
			return
		}
		if !known {
			rules = []rbacv1.PolicyRule{{}} // not held by any user
		}
		n.Grants = append(n.Grants, Grant{Namespace: where, Rules: rules,
			Right: Right{Group: rbacv1.GroupName, Resource: bound.resource(), Namespace: where, Verb: "bind", Name: bound.name}})
	}
}

func decode(d *plan.Desired, into any) bool {
	manifest := d.Unpacked().Manifest
	return manifest != nil && runtime.DefaultUnstructuredConverter.FromUnstructured(manifest.Object, into) == nil
}

// compare orders rights.
func compare(a, b Right) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Name, b.Name))
}
