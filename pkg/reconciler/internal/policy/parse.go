// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// readers read the value of an annotation into a set, by the annotation's suffix.
var readers = map[string]func(set *Set, value string) error{
	v1alpha1.AnnotationAdoptionPolicy:      func(s *Set, v string) error { return readEnum(&s.Adoption, adoptionPolicies, v) },
	v1alpha1.AnnotationReconcilePolicy:     func(s *Set, v string) error { return readEnum(&s.Reconcile, reconcilePolicies, v) },
	v1alpha1.AnnotationUpdatePolicy:        func(s *Set, v string) error { return readEnum(&s.Update, updatePolicies, v) },
	v1alpha1.AnnotationRecreatePropagation: func(s *Set, v string) error { return readEnum(&s.RecreatePropagation, propagations, v) },
	v1alpha1.AnnotationDeletePolicy:        func(s *Set, v string) error { return readEnum(&s.Delete, deletePolicies, v) },
	v1alpha1.AnnotationDriftPolicy:         func(s *Set, v string) error { return readEnum(&s.Drift, driftPolicies, v) },
	v1alpha1.AnnotationRunOn:               func(s *Set, v string) error { return readEnum(&s.RunOn, runOns, v) },
	v1alpha1.AnnotationApplyOrder:          func(s *Set, v string) error { return readOrder(&s.Order.Apply, v) },
	v1alpha1.AnnotationDeleteOrder:         func(s *Set, v string) error { return readOrder(&s.Order.Delete, v) },
	v1alpha1.AnnotationPurgeOrder:          readPurgeOrder,
	v1alpha1.AnnotationReapplyInterval:     readReapply,
	v1alpha1.AnnotationStatusHint:          readHints,
	v1alpha1.AnnotationReadyWhen:           readReadyWhen,
	v1alpha1.AnnotationIgnoreFields:        readIgnoreFields,
	v1alpha1.AnnotationDependsOn:           readDependsOn,
	v1alpha1.AnnotationRevision:            readRevision,
}

// others are annotations with our prefix that say nothing about a dependent:
// the marks themselves, and those of components, because a dependent of one
// component may be a component itself.
var others = map[string]bool{
	v1alpha1.LabelOwnerID:               true,
	v1alpha1.AnnotationOwner:            true,
	v1alpha1.AnnotationManagementPolicy: true,
	v1alpha1.AnnotationAllowEmpty:       true,
	v1alpha1.AnnotationSkipDeleteHooks:  true,
	v1alpha1.AnnotationAbandon:          true,
}

// Parse lays the annotations of an object over the defaults. The prefix is the
// name of the reconciler; annotations with another prefix are ignored, unknown
// ones with this prefix are mistakes. The error lists every mistake with the
// annotation, the value and what is allowed.
func Parse(prefix string, annotations map[string]string, defaults Set) (Set, error) {
	set := defaults.filled()
	var mistakes []mistake
	for name, value := range annotations {
		suffix, ours := cutPrefix(name, prefix)
		if !ours || others[suffix] {
			continue
		}
		read, known := readers[suffix]
		if !known {
			mistakes = append(mistakes, mistake{name, errors.New("is not known; known are " + strings.Join(knownSuffixes(), ", "))})
			continue
		}
		for _, err := range parts(read(&set, value)) {
			mistakes = append(mistakes, mistake{name, err})
		}
	}
	if len(mistakes) > 0 {
		return Set{}, join(mistakes)
	}
	if purge := set.Order.Purge; purge != nil {
		*purge = max(*purge, set.Order.Apply) // an object is not purged before it is applied
	}
	return set, nil
}

// mistake is what is wrong with an annotation.
type mistake struct {
	annotation string
	err        error
}

// parts returns the mistakes that a reader found in one value.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// join lists the mistakes in the order of the annotations' names, because maps have none.
func join(mistakes []mistake) error {
	slices.SortStableFunc(mistakes, func(a, b mistake) int { return strings.Compare(a.annotation, b.annotation) })
	errs := make([]error, len(mistakes))
	for i, m := range mistakes {
		errs[i] = fmt.Errorf("annotation %s: %w", m.annotation, m.err)
	}
	return errors.Join(errs...)
}

// cutPrefix returns what follows "prefix/".
func cutPrefix(name, prefix string) (suffix string, found bool) {
	if len(name) <= len(prefix) || name[len(prefix)] != '/' || name[:len(prefix)] != prefix {
		return "", false
	}
	return name[len(prefix)+1:], true
}

// knownSuffixes returns what may be said about a dependent, in order.
func knownSuffixes() []string {
	names := make([]string, 0, len(readers))
	for name := range readers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func readEnum[T ~string](target *T, values []T, text string) error {
	if IsUnset(text) {
		return nil
	}
	value, err := parseEnum(values, text)
	if err == nil {
		*target = value
	}
	return err
}

func readOrder(target *int16, text string) error {
	order, err := strconv.ParseInt(strings.TrimSpace(text), 10, 16)
	if err != nil {
		return fmt.Errorf("%s is not an integer from -32768 to 32767", quote(text))
	}
	*target = int16(order)
	return nil
}

func readPurgeOrder(set *Set, text string) error {
	var order int16
	if err := readOrder(&order, text); err != nil {
		return err
	}
	set.Order.Purge = &order
	return nil
}

func readReapply(set *Set, text string) error {
	interval, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil || interval < minReapply {
		return fmt.Errorf("%s is not a duration of at least 1m, such as 30m or 12h", quote(text))
	}
	set.Reapply = interval
	return nil
}

func readRevision(set *Set, text string) error {
	if set.Revision = strings.TrimSpace(text); set.Revision == "" {
		return errors.New("the revision is empty")
	}
	return nil
}

func readReadyWhen(set *Set, text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("the expression is empty")
	}
	set.ReadyWhen = strings.TrimSpace(text)
	return nil
}
