// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// reconcilerName is the prefix of our label and annotation in these tests.
const reconcilerName = "corbel.example.com"

// theOwner is the component in these tests; theEarlier is the one that had its
// name before, and theOther is another one.
var (
	theOwner   = Owner{ID: "id-main", Ref: OwnerRef{Group: "example.com", Kind: "Shop", Namespace: "shop", Name: "main", UID: "uid-main"}}
	theEarlier = Owner{ID: "id-main", Ref: OwnerRef{Group: "example.com", Kind: "Shop", Namespace: "shop", Name: "main", UID: "uid-before"}}
	theOther   = Owner{ID: "id-other", Ref: OwnerRef{Group: "example.com", Kind: "Shop", Namespace: "shop", Name: "other", UID: "uid-other"}}
)

// startOfTime is when every world starts.
var startOfTime = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

// object is an object of the world.
type object struct {
	key        Key
	uid        types.UID
	version    int
	ownership  Ownership
	value      string // the fields that our manifests set
	extra      string // fields that others added
	by         string // which client changed the value last, besides us, and when
	changed    time.Time
	created    time.Time
	deleting   time.Time
	finalizers []string
	defines    []v1alpha1.TypeInfo
	status     Status
	expires    bool   // the cluster removes it after its end
	referenced bool   // it has ownerReferences
	automatic  string // what shows that we created the namespace
	keyless    bool   // nothing is known that could seal its record
}

// world is a small cluster in memory. It executes steps as strictly as an API
// server, and writes down what should never happen.
type world struct {
	now        time.Time
	objects    map[Key]*object
	uids       int
	versions   int
	unreadable map[Key]string      // why reads fail
	hidden     map[Key]string      // why the content of namespaces cannot be read
	refused    map[Key]string      // why writes fail
	clashes    map[Key]bool        // creations are refused, because a value is already allocated
	lost       map[Key]bool        // the answer to the next write gets lost
	late       map[Key]Observation // what the watch reports, if it receives no events
	strips     map[Key]bool        // an admission webhook strips our label and annotation
	immutable  map[Key]bool        // the value cannot be changed
	frozen     map[Key]bool        // nothing can be written in place, and be it the same
	accepted   map[Key]bool        // a dry run was accepted
	violations []string
	// left is how far objects had come that a watch saw go, by their uids; nil if there
	// is no watch.
	left map[types.UID]Finish
}

func newWorld() *world {
	return &world{
		now: startOfTime, objects: map[Key]*object{}, unreadable: map[Key]string{}, hidden: map[Key]string{}, refused: map[Key]string{},
		clashes: map[Key]bool{}, lost: map[Key]bool{}, strips: map[Key]bool{}, immutable: map[Key]bool{}, frozen: map[Key]bool{}, accepted: map[Key]bool{}, late: map[Key]Observation{},
	}
}

func (w *world) violate(format string, args ...any) {
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

// put adds an object that another client creates.
func (w *world) put(o object) *object {
	w.uids++
	o.uid, o.created = types.UID("u"+strconv.Itoa(w.uids)), w.now
	o.status = firstStatus(o.key)
	w.objects[o.key] = &o
	w.touch(&o)
	return &o
}

// touch gives the object a new resourceVersion.
func (w *world) touch(o *object) {
	w.versions++
	o.version = w.versions
}

// firstStatus is what a new object shows before any controller looked at it.
func firstStatus(key Key) Status {
	switch key.Kind {
	case "Deployment", "Job", "APIService":
		return Status{Readiness: NotReady, Message: "not available"}
	case "CustomResourceDefinition":
		return Status{Readiness: NotReady, Message: "not established"}
	case "Foo", "Bar":
		return Status{Readiness: ReadinessUnknown}
	default:
		return Status{Readiness: Ready}
	}
}

// progress lets the controllers of the cluster do their work: objects get ready.
func (w *world) progress() {
	for _, key := range w.keys() {
		o := w.objects[key]
		if o.deleting.IsZero() && o.status.Readiness != Ready {
			o.status = Status{Readiness: Ready}
			w.touch(o)
		}
	}
}

func (w *world) keys() []Key {
	return slices.SortedFunc(maps.Keys(w.objects), Key.Compare)
}

// customGroup is the group of the types that are served only if they are defined.
const customGroup = "example.com"

// serves reports whether the type can be used: a definition has to be established.
func (w *world) serves(gk schema.GroupKind) bool {
	if gk.Group != customGroup {
		return true
	}
	for _, o := range w.objects {
		if o.status.Readiness == Ready && o.definesType(gk) {
			return true
		}
	}
	return false
}

// defines reports whether a definition of the type exists, established or not.
func (w *world) defines(gk schema.GroupKind) bool {
	for _, o := range w.objects {
		if o.definesType(gk) {
			return true
		}
	}
	return false
}

func (o *object) definesType(gk schema.GroupKind) bool {
	return slices.ContainsFunc(o.defines, func(t v1alpha1.TypeInfo) bool { return t.Matches(gk.Group, gk.Kind) })
}

// instances are the objects of the types that the object defines.
func (w *world) instances(definition *object) []*object {
	var found []*object
	for _, key := range w.keys() {
		if definition.definesType(key.GroupKind()) {
			found = append(found, w.objects[key])
		}
	}
	return found
}

// content are the objects in a namespace.
func (w *world) content(namespace string) []*object {
	var found []*object
	for _, key := range w.keys() {
		if key.Namespace == namespace {
			found = append(found, w.objects[key])
		}
	}
	return found
}

// observe reads an object as the runtime does; manifest reports whether it is
// desired. What is not desired is absent if its type is.
func (w *world) observe(key Key, manifest bool) Observation {
	if reason, failing := w.unreadable[key]; failing {
		return Observation{Message: reason}
	}
	if !w.serves(key.GroupKind()) {
		if !manifest && !w.defines(key.GroupKind()) {
			return Observation{Existence: Absent} // the type is proven to be gone
		}
		return Observation{Message: "the type is not served", NotServed: true}
	}
	o := w.objects[key]
	if o == nil {
		absent := Observation{Existence: Absent}
		if isNamespace(key) {
			absent.Automatic = "proof"
		}
		return absent
	}
	return o.observation(manifest)
}

func (o *object) observation(manifest bool) Observation {
	metadata := fmt.Sprintf("%s %s", o.ownership.OwnerID, o.ownership.Ref)
	observed := Observation{
		Existence: Present, UID: o.uid, ResourceVersion: strconv.Itoa(o.version), Ownership: o.ownership,
		ObservedHash:      strings.Join([]string{o.value, o.extra, metadata, strings.Join(o.ownership.OtherOwners, " ")}, "|"),
		DeletionTimestamp: o.deleting, Finalizers: slices.Clone(o.finalizers), CreationTimestamp: o.created, Status: o.status,
		Seal: o.seal(), HasOwnerReferences: o.referenced, Automatic: o.automatic,
	}
	observed.Ownership.OtherOwners, observed.Finish = slices.Clone(o.ownership.OtherOwners), o.ending()
	if o.isDead() {
		observed.Webhooks = map[string]string{deadWebhook: "its namespaceSelector is name=shop"}
	}
	if manifest {
		observed.AppliedHash = o.value + "|" + metadata
	}
	return observed
}

// deadWebhook is the name of a webhook that cannot be called.
const deadWebhook = "dead.example.com"

// isDead reports whether the object is a configuration of that webhook.
func (o *object) isDead() bool {
	return IsWebhookConfiguration(o.key.GroupKind()) && strings.HasPrefix(o.value, "dead")
}

// control puts a controller into the ownerReferences.
func (o *object) control() {
	o.ownership.Controller, o.referenced = Controller{Kind: "Deployment", Name: "web", UID: "uid-web"}, true
}

// isOfOther reports whether the object has the label of another component.
func (o *object) isOfOther() bool { return o.ownership.OwnerID == theOther.ID }

// seal is what the record of the object holds if it is ours.
func (o *object) seal() string {
	if o.keyless {
		return ""
	}
	return "seal of " + theOwner.ID + " for " + string(o.uid)
}

func (o *object) ending() Finish {
	switch {
	case !o.expires:
		return FinishUnknown
	case o.status.Readiness == Ready:
		return FinishComplete
	case o.status.Readiness == Failed:
		return FinishFailed
	}
	return Unfinished
}

// remove removes an object, with all that a server removes with it.
func (w *world) remove(o *object) {
	if len(o.finalizers) > 0 {
		if o.deleting.IsZero() {
			o.deleting = w.now
			w.touch(o)
		}
		return
	}
	if w.left != nil {
		w.left[o.uid] = o.ending()
	}
	delete(w.objects, o.key)
	if o.key.Kind == "CustomResourceDefinition" {
		for _, instance := range w.instances(o) {
			delete(w.objects, instance.key)
		}
	}
	if o.key.Kind == "Namespace" {
		for _, inside := range w.content(o.key.Name) {
			delete(w.objects, inside.key)
		}
	}
}

// finish removes terminating objects that nothing holds any more.
func (w *world) finish() {
	for _, key := range w.keys() {
		if o := w.objects[key]; o != nil && !o.deleting.IsZero() {
			w.remove(o)
		}
	}
}

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
	if o.isOfOther() && s.Desired.Policies.Adoption != v1alpha1.AdoptionPolicyAlways {
		w.violate("%s %s: writes an object of another component", s.Verb, s.Key)
	}
	if s.SkipIfUnchanged && o.value == valueOf(s) {
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
	o.defines, o.expires = s.Desired.Defines, s.Desired.HasTTL
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
	if o.isOfOther() {
		w.violate("delete %s: removes an object of another component", s.Key)
	}
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
	w.strip(o)
	return nil
}

// strip removes our label and annotation from the object and orphans it.
func (w *world) strip(o *object) {
	o.ownership.OwnerID, o.ownership.Ref = "", OwnerRef{}
	w.touch(o)
}

func valueOf(s Step) string {
	value, _, _ := unstructured.NestedString(s.Desired.Manifest.Object, "value")
	return value
}
