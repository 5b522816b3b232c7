// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/cluster"
)

// noisyTypes are types whose objects come by themselves and hold nothing that
// anybody would miss.
var noisyTypes = []schema.GroupResource{
	{Resource: "events"},
	{Group: "events.k8s.io", Resource: "events"},
	{Resource: "endpoints"},
	{Group: "discovery.k8s.io", Resource: "endpointslices"},
	{Group: "coordination.k8s.io", Resource: "leases"},
}

// inhabitant is an object in a namespace, as far as its metadata tell.
type inhabitant struct {
	resource    schema.GroupVersionResource
	name, uid   string
	terminating bool
	standard    bool // every namespace has one
	owners      []owner
}

type owner struct {
	uid  string
	kind schema.GroupKind
}

func inhabitantOf(resource cluster.Resource, item metav1.PartialObjectMetadata) inhabitant {
	object := inhabitant{
		resource:    resource.GVR,
		name:        resource.Kind + " " + item.Name,
		uid:         string(item.UID),
		terminating: item.DeletionTimestamp != nil,
		standard:    isStandard(resource, item),
	}
	for _, reference := range item.OwnerReferences {
		object.owners = append(object.owners, owner{
			uid:  string(reference.UID),
			kind: schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind(),
		})
	}
	return object
}

// isStandard tells whether the control plane puts the object into every namespace.
func isStandard(resource cluster.Resource, item metav1.PartialObjectMetadata) bool {
	if resource.GVR.Group != "" {
		return false
	}
	switch resource.Kind {
	case "ServiceAccount":
		return item.Name == "default"
	case "ConfigMap":
		return item.Name == "kube-root-ca.crt"
	case "Secret":
		return strings.HasPrefix(item.Name, "default-token-") && item.Annotations["kubernetes.io/service-account.name"] == "default"
	default:
		return false
	}
}

// stays tells, without a look at others, that the object is no noise.
func (o inhabitant) stays() bool { return !o.terminating && !o.standard && len(o.owners) == 0 }

// isNoise tells whether the object goes away by itself: it is being deleted, or
// all its owners are gone or go away, so that garbage collection takes it. That
// is how the pods of a deleted Deployment look for a moment.
func (c *inhabitants) isNoise(object inhabitant) bool { return c.goes(object, 0) }

// maxChain is longer than any chain of owners. Chains could be circular.
const maxChain = 10

func (c *inhabitants) goes(object inhabitant, depth int) bool {
	if object.terminating || object.standard {
		return true
	}
	if len(object.owners) == 0 || depth > maxChain {
		return false
	}
	for _, o := range object.owners {
		present, ok := c.byUID[o.uid]
		switch {
		case ok && c.goes(present, depth+1):
		case !ok && c.known[o.kind]:
			// All objects of the owner's type were read, and it was not among them.
		default:
			return false
		}
	}
	return true
}
