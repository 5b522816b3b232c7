// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// RecoverRequest asks for the objects of an owner after its record was lost in part.
type RecoverRequest struct {
	Owner Owner
	// Inventory is the part of the record that is left. Its format and its target are checked.
	Inventory v1alpha1.Inventory
	// Types are the types of the objects to look for.
	Types []v1alpha1.InventoryType
	// Namespaces are where objects of namespaced types are looked for if they may
	// not be listed everywhere; if it is empty, that is an error.
	Namespaces []string
	// Policies are the defaults of the owner.
	Policies Policies
	// Since is when the owner was created. It is set if the whole record is lost: then types that
	// may not be listed are left out, unless that is all of them, and objects older than the owner
	// are orphaned when they are not desired.
	Since time.Time
	// Patterns are more types to look for, as the server serves them now. They need Since.
	Patterns []v1alpha1.TypeInfo
}

// Recover finds the objects again that name the owner in label and annotation, and returns items
// that record them: it is for an inventory of which a part was lost. Only metadata is read, but for
// objects that define types. The record also held that an object was not created yet, was orphaned
// or did its work, and that something in a namespace or of a type was orphaned: that is lost. So is
// the digest of the last manifest; a desired object is written once more.
//
// An error names the types that could not be listed. Then nothing is returned, because missing
// items would look like absent objects. With Since, objects of an earlier owner of the same name
// are returned, too: Apply and Delete report them once, and do not remove them.
func (r *Reconciler) Recover(ctx context.Context, request RecoverRequest) (found []v1alpha1.InventoryItem, unlisted []string, err error) {
	in, err := r.input(ctx, plan.Deleting, request.Owner, request.Inventory, nil)
	if err != nil {
		return nil, nil, err
	}
	defaults, _, err := r.defaults(request.Policies)
	if err != nil {
		return nil, nil, &InvalidError{Err: err}
	}
	in.Owner.Former = request.Policies.AdoptOperator
	search := search{Reconciler: r, owner: in.Owner, request: request, defaults: defaults, met: map[types.UID]bool{}}
	asked := map[schema.GroupKind]bool{}
	var errs, refusals []error
	look := func(gk schema.GroupKind, list func() error) {
		if asked[gk] {
			return
		}
		asked[gk] = true
		err := list()
		if err != nil {
			err = fmt.Errorf("look for objects of type %s that belong to %s: %w", gk, in.Owner.Ref.Title(), err)
		}
		switch {
		case apierrors.IsForbidden(err) && !request.Since.IsZero():
			refusals, unlisted = append(refusals, err), append(unlisted, gk.String())
		case err != nil:
			errs = append(errs, err)
		}
	}
	for _, t := range request.Types {
		gk := schema.GroupKind{Group: t.Group, Kind: t.Kind}
		look(gk, func() error { return search.list(ctx, gk, t.Version) })
	}
	for _, pattern := range request.Patterns {
		matching, unknown, err := r.target.Types().Matching(ctx, pattern)
		if err == nil && len(unknown) > 0 {
			err = fmt.Errorf("the server does not say which types there are in %s", unknown[0])
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("look for objects that belong to %s: %w", in.Owner.Ref.Title(), err))
		}
		for _, resource := range matching {
			if resource.Can("list") && resource.Can("delete") {
				look(resource.GVK().GroupKind(), func() error { return search.listResource(ctx, resource, resource.GVR.Version) })
			}
		}
	}
	if len(refusals) > 0 && len(refusals) == len(asked) { // nothing was looked for
		errs = append(errs, refusals[0])
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	return search.found, unlisted, nil
}

type search struct {
	*Reconciler
	owner    plan.Owner
	request  RecoverRequest
	defaults policy.Set
	found    []v1alpha1.InventoryItem
	// met are the objects that were found: a server may serve one object in several groups.
	met map[types.UID]bool
}

func (s *search) list(ctx context.Context, gk schema.GroupKind, version string) error {
	resource, err := s.target.Types().ResolveAny(ctx, gk, version)
	if _, unserved := errors.AsType[*cluster.NotServedError](err); unserved {
		gone, err := s.target.Types().Gone(ctx, gk)
		if err == nil && !gone {
			err = errors.New("the server does not serve the type at the moment")
		}
		return err
	}
	if err != nil {
		return err
	}
	return s.listResource(ctx, resource, version)
}

// listResource adds the objects of a type, wherever they are.
func (s *search) listResource(ctx context.Context, resource cluster.Resource, version string) error {
	err := s.listNamespace(ctx, resource, version, "")
	if !apierrors.IsForbidden(err) || !resource.Namespaced || len(s.request.Namespaces) == 0 {
		return err
	}
	for _, namespace := range s.request.Namespaces {
		if err := s.listNamespace(ctx, resource, version, namespace); err != nil {
			return fmt.Errorf("namespace %s: %w", namespace, err)
		}
	}
	return nil
}

// listNamespace adds the objects of one namespace, or of all.
func (s *search) listNamespace(ctx context.Context, resource cluster.Resource, version, namespace string) error {
	err := s.listNamed(ctx, s.name, resource, version, namespace)
	if former := s.owner.Former; err == nil && former != "" {
		err = s.listNamed(ctx, former, resource, version, namespace)
	}
	return err
}

// listNamed adds the objects with the label of one reconciler.
func (s *search) listNamed(ctx context.Context, reconciler string, resource cluster.Resource, version, namespace string) error {
	options := metav1.ListOptions{Limit: pageSize, LabelSelector: reconciler + "/" + vocabulary.LabelOwnerID + "=" + s.owner.ID}
	for {
		list, err := s.target.Objects().ListMetadata(ctx, resource, namespace, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := s.add(ctx, reconciler, resource, version, &list.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// add records an object, if both its label and its annotation name our owner: controllers copy
// labels to objects that they make.
func (s *search) add(ctx context.Context, reconciler string, resource cluster.Resource, version string, object *metav1.PartialObjectMetadata) error {
	ref, _ := plan.ParseOwnerRef(object.Annotations[reconciler+"/"+vocabulary.AnnotationOwner])
	ours := ref == s.owner.Ref || !s.request.Since.IsZero() && ref.SameOwner(s.owner.Ref)
	if !ours || object.Labels[reconciler+"/"+vocabulary.LabelOwnerID] != s.owner.ID || s.met[object.UID] {
		return nil
	}
	s.met[object.UID] = true
	item := v1alpha1.InventoryItem{
		Group: resource.GVR.Group, Version: cmp.Or(version, resource.GVR.Version), Kind: resource.Kind,
		Namespace: object.Namespace, Name: object.Name, UID: object.UID,
		DeletePolicy: v1alpha1.DeletePolicyOrphan, // unless it is known that it may be deleted
	}
	// Where the manifest is not known, only the object shows its policies.
	defaults := s.defaults.WithKeep(object.Labels, object.Annotations)
	if policies, err := policy.Parse(reconciler, object.Annotations, defaults); err == nil {
		item.ApplyOrder, item.DeleteOrder = policies.Order.Apply, policies.Order.Delete
		item.DependsOn, item.RunOn = plan.RecordedReferences(policies.DependsOn, object.Namespace), string(policies.RunOn)
		if item.DeletePolicy = policies.Delete; item.DeletePolicy == v1alpha1.DeletePolicyDelete {
			item.DeletePolicy = ""
		}
	}
	if object.CreationTimestamp.Time.Before(s.request.Since) {
		item.DeletePolicy = v1alpha1.DeletePolicyOrphan
	}
	var err error
	if item.Defines, err = s.defines(ctx, resource, object.Name); err != nil {
		return fmt.Errorf("%s %s: %w", resource.Kind, object.Name, err)
	}
	s.found = append(s.found, item)
	return nil
}

// defines returns the types that an object brings: they protect instances of other owners from
// being deleted with it.
func (s *search) defines(ctx context.Context, resource cluster.Resource, name string) ([]v1alpha1.TypeInfo, error) {
	_, group, _ := strings.Cut(name, ".")
	switch resource.GVK().GroupKind() {
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return []v1alpha1.TypeInfo{{Group: group, Kind: "*"}}, nil
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		definition, err := s.target.Objects().Get(ctx, resource, "", name)
		if err != nil {
			return nil, err
		}
		kind, _, err := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		return []v1alpha1.TypeInfo{{Group: group, Kind: kind}}, err
	default:
		return nil, nil
	}
}

// Rekeyed returns the items of an inventory with digests that were made with another key than
// ReconcilerOptions.DigestKey, because that key was lost or another operator had it. They say no more
// of which manifest an object was made: Apply writes most objects in place once, and neither
// recreates an object nor runs one again for that.
func Rekeyed(items []v1alpha1.InventoryItem) []v1alpha1.InventoryItem { return plan.Rekeyed(items) }

// maxSingleReads is up to how many objects of one type and namespace are read one by
// one; more are looked for in a list.
const maxSingleReads = 2

// pageSize bounds the pages in which objects are listed.
const pageSize = 500

// listedPerRead is how many objects in a list cost about as much as one read. Without it, each
// component of a fleet would list the objects of the whole fleet at its end.
const listedPerRead = 10

// listPlace is where objects can be listed.
type listPlace struct {
	schema.GroupVersionKind
	namespace string
}

// recheckGone observes once more the objects that this call dropped from the record because they
// are gone: a creation that was delayed for long, perhaps by a predecessor of this process, may
// have put them back. Objects that exist and are ours return to the record, as do objects that
// cannot be read; recheckGone reports whether there are any. Nothing is read if nothing has gone,
// nor if there can be no such creation.
func (r *Reconciler) recheckGone(ctx context.Context, c *call) (returned bool, err error) {
	if c.in.soleWriter {
		c.gone = nil
		return false, nil
	}
	places := map[listPlace][]plan.Key{}
	items := map[plan.Key]v1alpha1.InventoryItem{}
	for _, item := range c.gone {
		key := plan.KeyOf(item)
		at := listPlace{schema.GroupVersionKind{Group: item.Group, Version: item.Version, Kind: item.Kind}, item.Namespace}
		places[at], items[key] = append(places[at], key), item
	}
	look := plan.Input{Owner: c.in.Owner, Recorded: c.gone, Live: map[plan.Key]plan.Observation{}}
	var candidates []plan.Key
	for at, keys := range places {
		candidates = append(candidates, r.mayExist(ctx, c.in.Owner, at, keys)...)
	}
	if err := r.observe(ctx, r.observer, &look, candidates, readMode{force: true}); err != nil {
		return false, err
	}
	// The component may have brought the rights that it acts with: the server has proven that the objects were gone.
	lostRights := slices.ContainsFunc(c.gone, func(item v1alpha1.InventoryItem) bool { return item.Group == "rbac.authorization.k8s.io" })
	c.gone = nil
	for key, live := range look.Live {
		if lostRights && live.Forbidden {
			continue
		}
		if live.Existence == plan.Absent || live.Existence == plan.Present && !c.in.Owner.Owns(live.Ownership) {
			continue
		}
		c.recordAgain(items[key], live)
		returned = true
	}
	return returned, nil
}

// mayExist returns the keys of objects that may exist again. The objects of the place are listed,
// whatever labels they have: an object that lost its label is ours by its annotation. If the first
// page shows so many that it costs less to read the keys one by one, all keys are returned.
func (r *Reconciler) mayExist(ctx context.Context, owner plan.Owner, at listPlace, keys []plan.Key) []plan.Key {
	if len(keys) <= maxSingleReads {
		return keys
	}
	resource, err := r.target.Types().ResolveAny(ctx, at.GroupKind(), at.Version)
	if _, unserved := errors.AsType[*cluster.NotServedError](err); unserved {
		return nil // there are no objects of a type that is not served
	}
	found := map[string]bool{}
	enough := int64(listedPerRead * len(keys))
	for page := (metav1.ListOptions{Limit: min(pageSize, enough)}); err == nil; {
		list, failed := r.target.Objects().ListMetadata(ctx, resource, at.namespace, page)
		if err = failed; err != nil {
			break
		}
		for _, object := range list.Items {
			ref, _ := plan.ParseOwnerRef(object.Annotations[r.name+"/"+vocabulary.AnnotationOwner])
			found[object.Name] = owner.Owns(plan.Ownership{OwnerID: object.Labels[r.name+"/"+vocabulary.LabelOwnerID], Ref: ref})
		}
		if page.Continue = list.Continue; page.Continue == "" {
			break
		}
		if left := list.RemainingItemCount; left == nil || *left > enough {
			return keys
		}
	}
	if err != nil {
		return keys // a user that may not list may still read
	}
	return slices.DeleteFunc(keys, func(key plan.Key) bool { return !found[key.Name] })
}

func (c *call) recordAgain(item v1alpha1.InventoryItem, live plan.Observation) {
	key := plan.KeyOf(item)
	item.UID, item.Seal, item.Phase = live.UID, live.Seal, vocabulary.PhaseApplied
	// The manifest of the object is not known, and events of the former object do not count.
	item.Digest, item.Finished, item.UnreadSince, item.UnreadLast = "", "", nil, nil
	c.in.Recorded = append(c.in.Recorded, item)
	c.in.Live[key] = live
	note := plan.Note{Key: key, Message: "may be there again after it was removed: " + live.Message}
	if live.Existence == plan.Present {
		note.Reason, note.Warning = report.WarnOrphanFound, true
		note.Message = "appeared again after it was removed, with our label and annotation; it is removed once more"
	}
	c.notes = append(c.notes, note)
}
