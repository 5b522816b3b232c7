// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Owner is who we are: the component (or release) on whose behalf objects are
// written.
type Owner struct {
	// ID is the value of the label owner-id: a hash over the cluster's uid and
	// the owner's group, kind, namespace and name.
	ID string
	// Ref is the owner in clear text.
	Ref OwnerRef
}

// OwnerRef is the value of the annotation owner.
type OwnerRef struct {
	Group, Kind, Namespace, Name string
	// UID tells incarnations of the same owner apart.
	UID types.UID
}

// String returns the annotation's value: group, kind, namespace, name and uid, separated by slashes.
func (r OwnerRef) String() string {
	return strings.Join([]string{r.Group, r.Kind, r.Namespace, r.Name, string(r.UID)}, "/")
}

// Title returns the form that messages use, such as "Shop shop/main".
func (r OwnerRef) Title() string {
	return Key{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}.String()
}

// SameOwner tells whether both are the same owner, perhaps in different incarnations.
func (r OwnerRef) SameOwner(other OwnerRef) bool {
	r.UID, other.UID = "", ""
	return r == other
}

// ParseOwnerRef reads the annotation's value; ok is false for anything else.
func ParseOwnerRef(value string) (ref OwnerRef, ok bool) {
	parts := strings.Split(value, "/")
	if len(parts) != 5 || parts[1] == "" || parts[3] == "" {
		return OwnerRef{}, false
	}
	return OwnerRef{Group: parts[0], Kind: parts[1], Namespace: parts[2], Name: parts[3], UID: types.UID(parts[4])}, true
}

// Marks are the signs of ownership found on an object.
type Marks struct {
	// OwnerID is the value of our label; empty if the object has none.
	OwnerID string
	// Ref is the value of our annotation; zero if absent or not readable.
	Ref OwnerRef
	// Others names owners that other tools and reconcilers have marked, such
	// as "Helm release shop/web". Marks that our own manifest sets are left out.
	Others []string
	// Controller is the controller among the object's ownerReferences; zero if there is
	// none. It is known of objects that were read.
	Controller Controller
}

// Controller is an object that controls another one.
type Controller struct {
	Kind, Name string
	UID        types.UID
}
