// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// The reasons for which the world refuses a step.
var (
	errConflict    = errors.New("the object has changed")
	errExists      = errors.New("the object exists already")
	errNoNamespace = errors.New("the namespace does not exist")
	errTerminating = errors.New("the namespace is being deleted")
	errNotServed   = errors.New("the type is not served")
	errImmutable   = errors.New("a field cannot be changed")
	errAllocated   = errors.New("the port is already allocated")
	errDead        = errors.New("the webhook cannot be called")
	errLost        = errors.New("the answer was lost")
)

// execute does one step, and answers as the executor of the runtime does.
func (w *world) execute(s Step) Result {
	r := Result{Step: s}
	if reason, refused := w.refused[s.Key]; refused {
		r.Err, r.Observation = errors.New(reason), w.observe(s.Key, s.Desired != nil)
		return r
	}
	for _, o := range w.objects {
		if o.isDead() && s.Key.Namespace != "" {
			r.Err, r.Observation = errDead, w.observe(s.Key, s.Desired != nil)
			return r
		}
	}
	switch s.Verb {
	case VerbCreate:
		r.Err = w.create(s)
	case VerbReplace, VerbMerge, VerbOverride:
		r.Err = w.write(s)
	case VerbMark:
		r.Err = w.restoreOwnership(s)
	case VerbDryRun:
		r.Err = w.dryRun(s)
	case VerbDelete:
		r.Blocked, r.Orphaned, r.Err = w.delete(s)
		_, hidden := w.hidden[s.Key]
		r.ContentUnknown = hidden && s.Guard != GuardNone
	case VerbOrphan:
		r.Err = w.orphan(s)
	default:
		r.Err = fmt.Errorf("unknown verb %q", s.Verb)
	}
	r.Observation = w.observe(s.Key, s.Desired != nil && s.Desired.Digest != namespaceDigest)
	if o := w.objects[s.Key]; r.Err == nil && o != nil {
		// The answer to a write holds the object, whether it can be read or not.
		r.Observation = o.observation(s.Desired != nil && s.Desired.Digest != namespaceDigest)
		if o.value == "altered" { // what a webhook makes another value
			r.Observation.Altered = "webhook a.example.com: data.value, data.other"
		}
	}
	if r.Err == nil && w.lost[s.Key] && s.Verb != VerbDryRun {
		delete(w.lost, s.Key)
		return Result{Step: s, Observation: Observation{Message: errLost.Error()}, Err: errLost}
	}
	return r
}

func (w *world) create(s Step) error {
	if s.UID != "" || s.ResourceVersion != "" {
		w.violate("create %s: has a precondition on an object", s.Key)
	}
	switch namespace := w.objects[namespaceKey(s.Key.Namespace)]; {
	case !w.serves(s.Key.GroupKind()):
		return errNotServed
	case w.objects[s.Key] != nil:
		return errExists
	case s.Key.Namespace != "" && namespace == nil:
		return errNoNamespace
	case s.Key.Namespace != "" && !namespace.deleting.IsZero():
		return errTerminating
	case w.clashesWith(s.Key, valueOf(s)):
		return errAllocated
	}
	w.send(w.put(object{key: s.Key}), s)
	return nil
}

// dryRun is create without an effect, of an object with a name that is in use.
func (w *world) dryRun(s Step) error {
	if namespace := w.objects[namespaceKey(s.Key.Namespace)]; s.Key.Namespace != "" && !namespace.deleting.IsZero() {
		return errTerminating
	}
	if w.clashesWith(s.Key, valueOf(s)) {
		return errAllocated
	}
	w.accepted[s.Key] = true
	return nil
}

// clashesWith reports whether an object cannot be created, because another one of its
// kind has the port that it asks for: a value such as port-80.
func (w *world) clashesWith(asking Key, value string) bool {
	if w.clashes[asking] {
		return true
	}
	if !strings.HasPrefix(value, "port-") {
		return false
	}
	for key, o := range w.objects {
		if key != asking && key.GroupKind() == asking.GroupKind() && o.value == value {
			return true
		}
	}
	return false
}

// find returns the object that a step is about, if it still is as the step saw it.
func (w *world) find(s Step) (*object, error) {
	if s.UID == "" || s.ResourceVersion == "" {
		w.violate("%s %s: has no precondition", s.Verb, s.Key)
	}
	o := w.objects[s.Key]
	if o == nil || o.uid != s.UID || strconv.Itoa(o.version) != s.ResourceVersion {
		return nil, errConflict
	}
	return o, nil
}

func (w *world) write(s Step) error {
	o, err := w.find(s)
	if err != nil {
		return err
	}
	w.checkWrite(o, s)
	if s.AsIntended && o.value == valueOf(s) {
		return nil
	}
	if o.referenced != s.HasOwnerReferences {
		w.violate("%s %s: does not know of the ownerReferences", s.Verb, s.Key)
	}
	if w.frozen[s.Key] || w.immutable[s.Key] && o.value != valueOf(s) {
		return errImmutable
	}
	if s.Verb == VerbReplace {
		// A PUT leaves nothing that the manifest does not have.
		o.extra, o.ownership.OtherOwners = "", nil
		if len(o.finalizers) != len(s.Finalizers) {
			w.violate("replace %s: loses finalizers", s.Key)
		}
	}
	w.send(o, s)
	// The ownership metadata of a former owner is removed with a second request, which is not sent
	// if the answer to the first one was lost.
	if s.RemovesFormerOwner() && len(o.ownership.OtherOwners) > 0 && !w.lost[s.Key] {
		o.ownership.OtherOwners = nil
		w.touch(o)
	}
	return nil
}

// restoreOwnership puts our label and annotation back, and nothing else.
func (w *world) restoreOwnership(s Step) error {
	o, err := w.find(s)
	if err != nil {
		return err
	}
	w.checkWrite(o, s)
	o.ownership.OwnerID, o.ownership.Ref = theOwner.ID, theOwner.Ref
	if w.strips[s.Key] {
		o.ownership.OwnerID, o.ownership.Ref = "", OwnerRef{}
	}
	w.touch(o)
	return nil
}

// send puts the manifest into the object.
func (w *world) send(o *object, s Step) {
	before := o.observation(true).ObservedHash
	manifest := s.Desired.Manifest
	o.value = valueOf(s)
	o.ownership.OwnerID = manifest.GetLabels()[reconcilerName+"/"+vocabulary.LabelOwnerID]
	o.ownership.Ref, _ = ParseOwnerRef(manifest.GetAnnotations()[reconcilerName+"/"+vocabulary.AnnotationOwner])
	o.defines, o.holder, o.expires = s.Desired.Defines, heldByUs, s.Desired.HasTTL
	o.automatic = manifest.GetAnnotations()[reconcilerName+"/"+vocabulary.AnnotationAutomatic]
	if w.strips[s.Key] {
		o.ownership.OwnerID, o.ownership.Ref = "", OwnerRef{}
	}
	if s.Verb == VerbCreate || o.observation(true).ObservedHash != before {
		o.status = firstStatus(o.key)
		w.touch(o) // a write that changes nothing gives no new resourceVersion
	}
}

func (w *world) delete(s Step) (blocked string, released bool, err error) {
	o, err := w.find(s)
	if err != nil {
		return "", false, err
	}
	w.checkRemoval(o, s)
	if s.Reason == ReasonRecreate && !w.accepted[s.Key] {
		w.violate("delete %s: nothing says that the server would create it anew", s.Key)
	}
	delete(w.accepted, s.Key)
	switch s.Guard {
	case GuardNoInstances, GuardNoInstancesElseOrphan:
		found := w.instances(o)
		others := slices.ContainsFunc(found, func(x *object) bool { return !slices.Contains(s.ItemAfter.Kept, x.uid) })
		if len(found) > 0 && s.Guard.AllowsOrphan() && !others {
			w.strip(o)
			return "", true, nil
		}
		if len(found) > 0 {
			return fmt.Sprintf("%d instances exist, such as %s", len(found), found[0].key), false, nil
		}
	case GuardEmpty, GuardEmptyElseOrphan, GuardKnownEmptyElseOrphan:
		found := w.content(o.key.Name)
		if reason, hidden := w.hidden[s.Key]; hidden && s.Guard != GuardKnownEmptyElseOrphan {
			return reason, false, nil
		} else if hidden {
			w.strip(o)
			return "", true, nil
		}
		if len(found) > 0 && s.Guard.AllowsOrphan() {
			w.strip(o)
			return "", true, nil
		}
		if len(found) > 0 {
			return fmt.Sprintf("%d objects live in it, such as %s", len(found), found[0].key), false, nil
		}
	}
	if o.key.Kind == "CustomResourceDefinition" && len(w.instances(o)) > 0 || o.key.Kind == "Namespace" && len(w.content(o.key.Name)) > 0 {
		w.violate("delete %s: data is lost", s.Key)
	}
	w.remove(o)
	return "", false, nil
}

func (w *world) orphan(s Step) error {
	o, err := w.find(s)
	if err != nil {
		return err
	}
	w.checkRemoval(o, s)
	w.strip(o)
	return nil
}

// strip removes our label and annotation from the object and orphans it.
func (w *world) strip(o *object) {
	o.ownership.OwnerID, o.ownership.Ref = "", OwnerRef{}
	if o.holder == heldByUs {
		o.holder = unheld
	}
	w.touch(o)
}

func valueOf(s Step) string {
	value, _, _ := unstructured.NestedString(s.Desired.Manifest.Object, "value")
	return value
}

// checkWrite looks at a write with the eyes of the object's true owner.
func (w *world) checkWrite(o *object, s Step) {
	adoption := s.Desired.Policies.Adoption
	allowed := o.holder == heldByUs || o.ownership.onlyOther(s.Desired.Policies) && o.ownership.OwnerID == "" ||
		// What still has our label is taken back: a tool has only added its annotation.
		adoption == v1alpha1.AdoptionPolicyAlways && (!(o.stolen && o.holder == heldByOther) || o.ownership.OwnerID == theOwner.ID) ||
		adoption == v1alpha1.AdoptionPolicyIfUnowned && (o.holder == unheld || o.holder == heldByEarlier) ||
		adoption == v1alpha1.AdoptionPolicyIgnore && o.holder == heldByEarlier
	if !allowed {
		w.violate("%s %s: writes what is held by %s, adoption is %s", s.Verb, s.Key, o.holder, adoption)
	}
	if s.Desired.Policies.Reconcile == v1alpha1.ReconcilePolicyOnce && o.holder == heldByUs && s.Reason != ReasonAdopted {
		w.violate("%s %s: writes what is applied only once, because %s", s.Verb, s.Key, s.Reason)
	}
}

// checkRemoval does the same for deletions: only what is ours may be touched.
func (w *world) checkRemoval(o *object, s Step) {
	// What was orphaned because it is in use may be asked for again, if a crash came
	// before the record: it is deleted only if it is empty by now.
	// So it is with a namespace that another component of ours has created.
	again := s.Guard.AllowsOrphan() && (s.ItemAfter.Seal == o.seal() || o.automatic != "") && o.holder == unheld
	// From an object of another owner only our label and annotation are removed.
	parting := s.Verb == VerbOrphan && len(o.ownership.OtherOwners) > 0 && (o.ownership.OwnerID == theOwner.ID || o.ownership.Ref == theOwner.Ref)
	if o.holder != heldByUs && !again && !parting {
		w.violate("%s %s: removes an object of %s", s.Verb, s.Key, o.holder)
	}
}
