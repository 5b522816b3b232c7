// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/conditions"
)

// confirmWindow is how long the last look at the server counts as current.
const confirmWindow = 5 * time.Second

// Helper makes changes of one object durable in the course of one reconcile. It is
// not safe for concurrent use.
type Helper struct {
	client      client.Client
	reader      client.Reader
	owner       string
	withoutSpec bool

	gvk      schema.GroupVersionKind
	key      client.ObjectKey
	uid      types.UID
	original content // as it was read first
	before   content // as we know the server has it
	// resourceVersion, generation and deleting belong to before.
	resourceVersion string
	generation      int64
	deleting        bool

	confirmed time.Time // when the server was last asked about the object, and answered
	writes    int
	// refused is why the server refused the last write.
	refused error
	// hasGenerationField is whether the type has status.observedGeneration; nil until it is needed.
	hasGenerationField *bool
}

// NewHelper returns a Helper for the object, which must have just been read.
// Adapters of pkg/conditions are accepted here and by all methods.
func NewHelper(obj client.Object, c client.Client, options ...HelperOption) (*Helper, error) {
	if obj == nil || c == nil {
		return nil, errors.New("a patch helper needs an object and a client")
	}
	obj = conditions.ObjectOf(obj)
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return nil, fmt.Errorf("find the kind of %T: %w", obj, err)
	}
	h := &Helper{client: c, reader: c, gvk: gvk, key: client.ObjectKeyFromObject(obj), uid: obj.GetUID(), confirmed: time.Now()}
	for _, option := range options {
		option(h)
	}
	if obj.GetResourceVersion() == "" {
		return nil, fmt.Errorf("%s: it has no resourceVersion; read it from the server first", h)
	}
	if h.reader == nil {
		h.reader = c
	}
	if err := h.setServerState(obj); err != nil {
		return nil, err
	}
	h.original = h.before
	return h, nil
}

// String names the object: kind, namespace and name.
func (h *Helper) String() string {
	return report.Key{Kind: h.gvk.Kind, Namespace: h.key.Namespace, Name: h.key.Name}.String()
}

// Refused returns why the server refused the last write, as a validation of the type or a webhook does. It is nil if the server
// accepted it, or gave no answer.
func (h *Helper) Refused() error { return h.refused }

// Writes returns the number of writes that succeeded so far.
func (h *Helper) Writes() int { return h.writes }

// MetadataChanged reports whether Commit and Patch would write metadata or spec.
func (h *Helper) MetadataChanged(obj client.Object) (bool, error) {
	changes, err := h.mainChanges(conditions.ObjectOf(obj))
	if err != nil {
		return false, fmt.Errorf("%s: %w", h, err)
	}
	return len(changes) > 0, nil
}

// Commit makes metadata and status durable. Call it before acting on anything
// outside the object.
//
// When it returns nil, all of status is on the server, and no other client had changed the object
// in a way that matters (see ErrConflict; annotations count here) at a moment at most five seconds
// ago; so if there is nothing to write, and the last look at the server is older, Commit looks.
// Other errors: PrunedError, NoStatusSubresourceError, and errors of the server. After an error
// nothing may be acted upon.
func (h *Helper) Commit(ctx context.Context, obj client.Object) error {
	obj = conditions.ObjectOf(obj)
	writes := h.writes
	if err := h.writeMain(ctx, obj, beforeActing); err != nil {
		return fmt.Errorf("commit %s: %w", h, err)
	}
	if err := h.writeStatus(ctx, obj, HelperOptions{}, beforeActing); err != nil {
		return fmt.Errorf("commit %s: %w", h, err)
	}
	if h.writes == writes && time.Since(h.confirmed) > confirmWindow {
		if err := h.confirm(ctx, obj); err != nil {
			return fmt.Errorf("commit %s: %w", h, err)
		}
	}
	return nil
}

// CommitMetadata makes metadata and spec durable, as Commit does, and leaves status alone. The next Commit or
// Patch writes it.
func (h *Helper) CommitMetadata(ctx context.Context, obj client.Object) error {
	if err := h.writeMain(ctx, conditions.ObjectOf(obj), beforeActing); err != nil {
		return fmt.Errorf("commit %s: %w", h, err)
	}
	return nil
}

// Patch writes the changes: metadata and spec in one request, status in another one. When the first
// removes the last finalizer of an object that is being deleted, there is nothing left to write a
// status to.
//
// If the type has no status subresource, the conditions are written by way of the object itself, so
// that users can read the error there; the error is returned nevertheless. An object that is gone
// gives an error that is ErrConflict and NotFound.
func (h *Helper) Patch(ctx context.Context, obj client.Object, options ...Option) error {
	var o HelperOptions
	for _, option := range options {
		option.ApplyToHelper(&o)
	}
	obj = conditions.ObjectOf(obj)
	mainErr := h.writeMain(ctx, obj, afterActing)
	if errors.Is(mainErr, ErrConflict) {
		return fmt.Errorf("patch %s: %w", h, mainErr)
	}
	if mainErr == nil && h.deleting && len(obj.GetFinalizers()) == 0 {
		return nil
	}
	// A refusal of the metadata is no reason to be silent about it in the status.
	statusErr := h.writeStatus(ctx, obj, o, afterActing)
	if _, missing := errors.AsType[*NoStatusSubresourceError](statusErr); missing {
		statusErr = errors.Join(statusErr, h.writeConditionsAsMain(ctx, obj))
	}
	if err := errors.Join(mainErr, statusErr); err != nil {
		return fmt.Errorf("patch %s: %w", h, err)
	}
	return nil
}

// PatchMetadata writes metadata and spec if they changed, and leaves status
// alone. It is for the one write that removes a finalizer: when it is the last one,
// the object is gone afterwards.
func (h *Helper) PatchMetadata(ctx context.Context, obj client.Object) error {
	if err := h.writeMain(ctx, conditions.ObjectOf(obj), afterActing); err != nil {
		return fmt.Errorf("patch %s: %w", h, err)
	}
	return nil
}

func (h *Helper) writeMain(ctx context.Context, obj client.Object, why purpose) error {
	changes, err := h.mainChanges(obj)
	if err != nil || len(changes) == 0 {
		return err
	}
	answer, err := h.send(ctx, obj, mainWrite{changes: changes}, why)
	if err != nil {
		return err
	}
	return h.acceptMain(obj, answer)
}

// mainChanges returns the changes of metadata and spec.
func (h *Helper) mainChanges(obj client.Object) (map[string]any, error) {
	if h.withoutSpec { // a status may be large
		obj = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Labels: obj.GetLabels(), Annotations: obj.GetAnnotations(), Finalizers: obj.GetFinalizers(), OwnerReferences: obj.GetOwnerReferences(),
		}}
	}
	after, err := contentOf(obj)
	if err != nil {
		return nil, err
	}
	return diff(h.before.main(h.withoutSpec), after.main(h.withoutSpec)), nil
}

func (h *Helper) writeStatus(ctx context.Context, obj client.Object, options HelperOptions, why purpose) error {
	after, err := h.statusOf(obj, options)
	if err != nil {
		return err
	}
	changes := diff(h.before.status(), after)
	if len(changes) == 0 {
		return nil
	}
	w := &statusWrite{ours: after, after: after, changes: changes, owned: options.OwnedConditions}
	answer, err := h.send(ctx, obj, w, why)
	if err != nil {
		return err
	}
	return h.acceptStatus(obj, w.after, answer)
}

// HelperOption configures a Helper.
type HelperOption func(*Helper)

// WithReader sets the reader for the look at the server after a conflict. It
// should not be a cache, which may be as old as the object. Default is the client.
func WithReader(reader client.Reader) HelperOption {
	return func(h *Helper) { h.reader = reader }
}

// WithFieldOwner sets the name under which the server records our writes.
func WithFieldOwner(owner string) HelperOption {
	return func(h *Helper) { h.owner = owner }
}

// WithoutSpec limits the Helper to metadata and status: changes of anything else
// stay in memory.
func WithoutSpec() HelperOption {
	return func(h *Helper) { h.withoutSpec = true }
}

// HelperOptions are the resolved options of one Patch.
type HelperOptions struct {
	// OwnedConditions are the types of conditions that no other client writes.
	OwnedConditions []string
	// IncludeStatusObservedGeneration makes Patch set status.observedGeneration.
	IncludeStatusObservedGeneration bool
}

// Option configures one Patch.
type Option interface {
	// ApplyToHelper applies the option.
	ApplyToHelper(options *HelperOptions)
}

// WithOwnedConditions names the types of conditions that no other client writes. After a conflict
// our side is right about them, and other clients' changes of all other conditions are kept.
// Without this option all of status is ours alone.
type WithOwnedConditions struct {
	// Conditions are the types.
	Conditions []string
}

// ApplyToHelper implements Option.
func (o WithOwnedConditions) ApplyToHelper(options *HelperOptions) {
	options.OwnedConditions = append(options.OwnedConditions, o.Conditions...)
}

// WithStatusObservedGeneration sets status.observedGeneration to the generation
// of the object, if its type has the field.
type WithStatusObservedGeneration struct{}

// ApplyToHelper implements Option.
func (WithStatusObservedGeneration) ApplyToHelper(options *HelperOptions) {
	options.IncludeStatusObservedGeneration = true
}

// ErrConflict means that the decisions of this reconcile rest on an old state of the object. It is
// no failure: end the reconcile without an error and requeue.
var ErrConflict = errors.New("the object was changed by another client")

// PrunedError means that the API server did not keep status fields as they were
// sent. Usually the CustomResourceDefinition is older than the operator.
type PrunedError struct {
	// Object names the object.
	Object string
	// Fields are the JSON paths of the fields, sorted.
	Fields []string
}

// Error names the fields. Commit and Patch wrap it with the object.
func (e *PrunedError) Error() string {
	return fmt.Sprintf("the API server does not keep %s as sent: update the CustomResourceDefinition", strings.Join(e.Fields, ", "))
}

// NoStatusSubresourceError means that the CustomResourceDefinition does not
// enable the status subresource.
type NoStatusSubresourceError struct {
	// Object names the object.
	Object string
}

// Error explains the remedy. Commit and Patch wrap it with the object.
func (e *NoStatusSubresourceError) Error() string {
	return "its type has no status subresource: enable it in the CustomResourceDefinition"
}
