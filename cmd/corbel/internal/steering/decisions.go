// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// NotDeleting returns an error for a component that is being deleted.
func NotDeleting(c inspect.Component) error {
	if c.Object.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%s is being deleted; \"%s\" says what it waits for", c, c.Command("why"))
	}
	return nil
}

// Now returns the value that asks for a reconcile at a time.
func Now(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// Reconcile asks for a reconcile now. The value, which Now returns, is found in the status when it is done.
func Reconcile(requested string) Decision {
	return func(c inspect.Component) (Annotations, string, error) {
		if c.Status.State == v1alpha1.StateSuspended {
			return nil, "", fmt.Errorf("%s is suspended, so it is not reconciled; \"%s\" ends that", c, c.Command("resume"))
		}
		return Annotations{vocabulary.AnnotationReconcileAt: &requested}, "annotated: its operator reconciles it", nil
	}
}

// Suspend leaves the dependents as they are until a time or, if it is zero, until Resume. The reason may be empty.
func Suspend(until time.Time, reason string) Decision {
	return func(c inspect.Component) (Annotations, string, error) {
		if err := NotDeleting(c); err != nil {
			return nil, "", err
		}
		value, text := "true", "suspended"
		if !until.IsZero() {
			value = until.UTC().Format(time.RFC3339)
			text += " until " + value
		}
		set := Annotations{vocabulary.AnnotationSuspend: &value, vocabulary.AnnotationSuspendReason: nil}
		if reason != "" {
			set[vocabulary.AnnotationSuspendReason] = &reason
			text += ": " + reason
		}
		return set, text, nil
	}
}

// Resume ends what Suspend did. SuspendedBy says whether something else suspends the component still.
func Resume(c inspect.Component) (Annotations, string, error) {
	text := "resumed"
	if asked := c.Annotation(vocabulary.AnnotationSuspend); asked == "" || asked == "false" {
		text = "has no annotation that suspends it"
	}
	return Annotations{vocabulary.AnnotationSuspend: nil, vocabulary.AnnotationSuspendReason: nil}, text, nil
}

// SuspendedBy returns what suspends a component beside the annotation of Suspend.
func SuspendedBy(c inspect.Component) string {
	if suspended, _, _ := unstructured.NestedBool(c.Object.Object, "spec", "suspend"); suspended {
		return "field spec.suspend"
	}
	if c.Annotation(v1alpha1.AnnotationManagementPolicy) == "skip" {
		return "annotation " + c.Reconciler + "/" + v1alpha1.AnnotationManagementPolicy
	}
	return ""
}

// Rollback applies an earlier revision in place of what the spec says; 0 asks for the last that was ready before the
// current one.
func Rollback(to int64) Decision {
	return func(c inspect.Component) (Annotations, string, error) {
		if err := NotDeleting(c); err != nil {
			return nil, "", err
		}
		revision, err := chooseRevision(c, to)
		if err != nil {
			return nil, "", err
		}
		value := strconv.FormatInt(revision, 10)
		return Annotations{vocabulary.AnnotationRollbackTo: &value},
			fmt.Sprintf("rolled back to revision %d; it stays there until \"%s\"", revision, c.Command("rollback", "--end")), nil
	}
}

// EndRollback applies what the spec says.
func EndRollback(c inspect.Component) (Annotations, string, error) {
	if err := NotDeleting(c); err != nil {
		return nil, "", err
	}
	if c.Annotation(vocabulary.AnnotationRollbackTo) == "" {
		return nil, "", NotRolledBack(c)
	}
	return Annotations{vocabulary.AnnotationRollbackTo: nil}, "is no longer rolled back: its operator applies its spec", nil
}

// WithoutRollback returns the component, as it is stored, or as it is edited if that is not nil, without the annotation
// that rolls it back. It is an error if there is none.
func WithoutRollback(c inspect.Component, edited *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if c.Annotation(vocabulary.AnnotationRollbackTo) == "" {
		return nil, NotRolledBack(c)
	}
	if edited == nil {
		edited = c.Object.DeepCopy()
	}
	annotations := edited.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[c.Reconciler+"/"+vocabulary.AnnotationRollbackTo] = "" // counts as none, also where annotations of a file are added
	edited.SetAnnotations(annotations)
	return edited, nil
}

// NotRolledBack is the error for a component that is not rolled back by an annotation.
func NotRolledBack(c inspect.Component) error {
	return fmt.Errorf("%s is not rolled back by an annotation", c)
}

// chooseRevision returns the revision to go back to.
func chooseRevision(c inspect.Component, to int64) (int64, error) {
	var kept []string
	for _, entry := range c.Status.History {
		if entry.Digest == "" {
			continue // its manifests are not kept
		}
		switch {
		case entry.Revision == to:
			return to, nil
		case to == 0 && entry.Revision < c.Status.Revision && entry.ReadyAt != nil:
			return entry.Revision, nil
		}
		kept = append(kept, strconv.FormatInt(entry.Revision, 10))
	}
	switch {
	case len(kept) == 0:
		return 0, fmt.Errorf("no revision of %s is kept; its operator may have switched the history off", c)
	case to == 0:
		return 0, fmt.Errorf("no revision of %s before the current one, %d, was ready; choose one with --to: %s", c, c.Status.Revision, strings.Join(kept, ", "))
	}
	return 0, fmt.Errorf("revision %d of %s is not kept; those that are: %s", to, c, strings.Join(kept, ", "))
}
