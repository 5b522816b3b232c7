// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/pkg/status"
)

// Input is the input of Build.
type Input struct {
	// Name is the name of the reconciler: the prefix of labels and annotations.
	Name  string
	Owner plan.Owner
	// Objects are the rendered objects. They are not changed.
	Objects []client.Object
	// Scheme has the kinds of typed objects without a kind of their own; it may be nil.
	Scheme *runtime.Scheme
	// Namespace is for namespaced objects that set none. If it is empty,
	// such objects are mistakes.
	Namespace string
	Defaults  policy.Set
	// IgnoreRules name fields to ignore in addition to those of the annotations.
	IgnoreRules []policy.IgnoreRule
	// ComponentDigest becomes part of the digest of the objects that are to be
	// written whenever the component changes.
	ComponentDigest string
	// HooksOnly leaves out objects that do not run before or after a deletion. Their mistakes do
	// not matter then, nor whether their types are served.
	HooksOnly bool
	// Managed are patterns of types that appear at run time.
	Managed []v1alpha1.TypeInfo
	// Shared are the types that all components share, by the name of their definition.
	Shared map[string]*SharedType
	// Stored: the objects come from a set that was stored, perhaps by another process.
	Stored bool
	// Resolve is called once for each type.
	Resolve Resolve
	Hasher  digest.Hasher
	// Compiler compiles ready-when expressions; it may be nil.
	Compiler *status.Compiler
}

// Resolve reports whether a type is served and whether its objects live in
// namespaces. [ErrUnmanageable] means that its objects cannot be dependents; any
// other error means that this is not known at the moment, which is no mistake of
// the user.
type Resolve func(ctx context.Context, gvk schema.GroupVersionKind) (namespaced, served bool, err error)

// ErrUnmanageable means that the server does not allow to create, read and delete the objects of a
// type. It keeps nothing of a SubjectAccessReview, for example, but answers it.
var ErrUnmanageable = errors.New("objects of the type cannot be created, read and deleted")

// InvalidError means that the objects cannot be applied as they are.
type InvalidError struct {
	// Err lists every mistake.
	Err error
}

// Error returns the mistakes, each in a line that names its object.
func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap returns the joined mistakes.
func (e *InvalidError) Unwrap() error { return e.Err }

// Build returns the desired objects, ordered by their keys. Mistakes in the
// objects are reported together as one InvalidError. If types could not be
// resolved, the error of that is returned, joined with the InvalidError if there
// are mistakes as well.
func Build(ctx context.Context, in Input) ([]plan.Desired, error) {
	items, err := read(in.Objects, in.Scheme)
	if err != nil {
		return nil, &InvalidError{Err: err}
	}
	for _, item := range items {
		item.identify()
		item.excluded = in.HooksOnly && !item.isHook(in.Name)
	}
	unresolved := place(ctx, in, items)
	for _, item := range items {
		item.finish(in)
	}
	checkOutputs(items)
	// Without the namespaces of some objects, relations between objects are not known.
	if unresolved == nil {
		relate(items, in.Managed)
	}
	if err := errors.Join(invalid(ctx, items), unresolved); err != nil {
		return nil, err
	}
	slices.SortFunc(items, func(a, b *item) int { return a.key.Compare(b.key) })
	objects := make([]plan.Desired, 0, len(items))
	for _, item := range items {
		if !item.excluded {
			objects = append(objects, item.desired(in))
		}
	}
	return objects, nil
}

// maxOutputs bounds the outputs of one owner.
//
// Unit: outputs
// Limit: the outputs of a component.
const maxOutputs = 64

// checkOutputs refuses names that several outputs have, and too many outputs.
func checkOutputs(items []*item) {
	known := map[string]*item{}
	for _, i := range items {
		for _, output := range i.policies.Outputs {
			if other := known[output.Name]; other != nil {
				i.mistake("output %s: %s has an output of this name, too", output.Name, other.key)
			} else if len(known) == maxOutputs {
				i.mistake("output %s: the component has more than %d outputs", output.Name, maxOutputs)
			} else {
				known[output.Name] = i
			}
		}
	}
}

// isHook reports whether the object runs before or after a deletion, or has an annotation about
// that which is not parsed yet.
func (i *item) isHook(name string) bool {
	return at(i.content, "metadata", "annotations", name+"/"+v1alpha1.AnnotationRunOn) != nil
}

// quotedText matches a value of a manifest in a message: all of them are quoted. The message of CEL
// about an expression is matched as a whole.
var quotedText = regexp.MustCompile(`(?s)ready-when ".*|"(?:[^"\\]|\\.)*"`)

// invalid unites the mistakes of all items.
func invalid(ctx context.Context, items []*item) error {
	var mistakes []error
	for _, item := range items {
		if item.excluded {
			continue
		}
		for _, mistake := range item.mistakes {
			if confidential.Covers(ctx, item.key.GroupKind()) {
				log.FromContext(ctx).Info("a mistake is reported without values of the manifest, which may come from a Secret", "object", item.title(), "mistake", mistake.Error())
				mistake = errors.New(quotedText.ReplaceAllString(mistake.Error(), `"..."`))
			}
			mistakes = append(mistakes, fmt.Errorf("%s: %w", item.title(), mistake))
		}
	}
	if len(mistakes) == 0 {
		return nil
	}
	return &InvalidError{Err: errors.Join(mistakes...)}
}

// desired returns the item in the form that the planner works with.
func (i *item) desired(in Input) plan.Desired {
	if !i.shared {
		setOwnership(i.content, in.Name, in.Owner)
	}
	return plan.Desired{
		Key:         i.key,
		Version:     i.version,
		Policies:    i.policies,
		Digest:      i.digest,
		Hook:        text(i.content, "metadata", "annotations", helmHook),
		HasTTL:      i.key.GroupKind() == kindJob && at(i.content, "spec", "ttlSecondsAfterFinished") != nil,
		Defines:     i.defines,
		ScaleTarget: i.scales(),
		Shared:      i.shared,
		Manifest:    &unstructured.Unstructured{Object: i.content},
	}
}

// scales returns the scale target of the item, if it configures an autoscaler.
func (i *item) scales() *plan.Key {
	target := plan.Key{Namespace: i.key.Namespace}
	switch i.key.GroupKind() {
	case schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:
	case schema.GroupKind{Group: "keda.sh", Kind: "ScaledObject"}:
		target.Group, target.Kind = "apps", "Deployment"
	default:
		return nil
	}
	reference := at(i.content, "spec", "scaleTargetRef")
	if gv, err := schema.ParseGroupVersion(text(reference, "apiVersion")); err == nil && !gv.Empty() {
		target.Group = gv.Group
	}
	target.Kind, target.Name = cmp.Or(text(reference, "kind"), target.Kind), text(reference, "name")
	return &target
}

// ManifestDigest identifies a set of objects, whatever their order.
func ManifestDigest(objects []plan.Desired) string {
	lines := make([]string, 0, len(objects))
	for _, object := range objects {
		if key := object.Key; !object.Shared {
			// No part of a key can hold a slash.
			lines = append(lines, strings.Join([]string{key.Group, key.Kind, key.Namespace, key.Name, object.Digest}, "/"))
		}
	}
	slices.Sort(lines)
	return digest.Combine(lines...)
}

// item is one object on its way through the door.
type item struct {
	// place is where the object was found, in a form that people count by, such as "object 3, item 2".
	place string
	// content is our own copy.
	content map[string]any
	// broken items lack data that the next steps need; their mistakes are noted.
	broken bool
	// excluded items are not returned, and their mistakes do not matter.
	excluded bool

	key      plan.Key
	version  string
	policies policy.Set
	// policiesValid: the policies are valid.
	policiesValid bool
	digest        string
	defines       []v1alpha1.TypeInfo
	// shared: all components share the type that the item defines.
	shared bool

	// mistakes do not name the item: its namespace may be found out later.
	mistakes []error
}

func (i *item) mistake(format string, args ...any) {
	i.mistakes = append(i.mistakes, fmt.Errorf(format, args...))
}

// fail notes a mistake after which nothing else can be checked.
func (i *item) fail(format string, args ...any) {
	i.mistake(format, args...)
	i.broken = true
}

// title names the item for messages: by type and name if it has both, by its
// position else.
func (i *item) title() string {
	switch {
	case i.key.Kind != "" && i.key.Name != "":
		return i.key.String()
	case i.key.Kind != "":
		return i.place + " (" + i.key.Kind + i.file() + ")"
	case i.file() != "":
		return i.place + " (" + i.file()[2:] + ")"
	default:
		return i.place
	}
}

// pathAnnotations are where tools put the name of the file that an object comes from.
var pathAnnotations = []string{"config.kubernetes.io/path", "internal.config.kubernetes.io/path"}

// file returns the file that the object comes from, if the object names it.
func (i *item) file() string {
	for _, name := range pathAnnotations {
		if path := text(i.content, "metadata", "annotations", name); path != "" {
			return ", " + path
		}
	}
	return ""
}

func (i *item) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: i.key.Group, Version: i.version, Kind: i.key.Kind}
}
