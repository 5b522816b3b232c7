// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// readers read the value of an annotation into a set, by the annotation's suffix.
var readers = map[string]func(set *Set, value string) error{
	v1alpha1.AnnotationAdoptionPolicy:       readAdoption,
	v1alpha1.AnnotationReconcilePolicy:      func(s *Set, v string) error { return readEnum(&s.Reconcile, vocabulary.ReconcilePolicies, v) },
	v1alpha1.AnnotationUpdatePolicy:         func(s *Set, v string) error { return readEnum(&s.Update, vocabulary.UpdatePolicies, v) },
	v1alpha1.AnnotationRecreatePropagation:  func(s *Set, v string) error { return readEnum(&s.RecreatePropagation, propagations, v) },
	v1alpha1.AnnotationDeletePolicy:         func(s *Set, v string) error { return readEnum(&s.Delete, vocabulary.DeletePolicies, v) },
	v1alpha1.AnnotationDriftPolicy:          func(s *Set, v string) error { return readEnum(&s.Drift, vocabulary.DriftPolicies, v) },
	v1alpha1.AnnotationRunOn:                func(s *Set, v string) error { return readEnum(&s.RunOn, runOns, v) },
	v1alpha1.AnnotationApplyOrder:           func(s *Set, v string) error { return readOrder(&s.Order.Apply, v) },
	v1alpha1.AnnotationDeleteOrder:          func(s *Set, v string) error { return readOrder(&s.Order.Delete, v) },
	v1alpha1.AnnotationPurgeOrder:           readPurgeOrder,
	v1alpha1.AnnotationReapplyInterval:      readReapply,
	v1alpha1.AnnotationStatusHint:           readHints,
	v1alpha1.AnnotationReadyWhen:            readReadyWhen,
	v1alpha1.AnnotationIgnoreFields:         readIgnoreFields,
	v1alpha1.AnnotationDependsOn:            readDependsOn,
	v1alpha1.AnnotationAllowBreakingChanges: func(s *Set, v string) error { return readFlag(&s.AllowBreakingChanges, v) },
	v1alpha1.AnnotationRevision:             readRevision,
}

// others are annotations with our prefix that are no policies of a dependent: the ownership label
// and annotation, and the annotations of components, because a dependent of one component may be a
// component itself.
var others = map[string]bool{
	vocabulary.LabelOwnerID:                true,
	vocabulary.AnnotationOwner:             true,
	v1alpha1.AnnotationManagementPolicy:    true,
	vocabulary.AnnotationOperatorNamespace: true,
	vocabulary.AnnotationSuspend:           true,
	vocabulary.AnnotationSuspendReason:     true,
	vocabulary.AnnotationReconcileAt:       true,
	vocabulary.AnnotationRollbackTo:        true,
	vocabulary.AnnotationRequireApproval:   true,
	vocabulary.AnnotationApprove:           true,
	vocabulary.AnnotationRollout:           true,
	vocabulary.AnnotationAllowEmpty:        true,
	vocabulary.AnnotationConfirmDeletion:   true,
	vocabulary.AnnotationSkipDeleteHooks:   true,
	vocabulary.AnnotationAbandon:           true,
	vocabulary.AnnotationAdoptHelmRelease:  true,
	vocabulary.AnnotationAdoptOperator:     true,
}

// Parse merges the annotations of an object into the defaults. The prefix is the name of the
// reconciler; annotations with another prefix are ignored, unknown ones with this prefix are
// mistakes. The error joins the mistakes, each with the annotation, the value and the allowed values.
func Parse(prefix string, annotations map[string]string, defaults Set) (Set, error) {
	set := defaults.filled()
	prefix += "/"
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		suffix, ours := strings.CutPrefix(name, prefix)
		if !ours || others[suffix] {
			continue
		}
		read, known := readers[suffix]
		if kind, output, is := strings.Cut(suffix, "."); is && (kind == v1alpha1.AnnotationOutput || kind == v1alpha1.AnnotationSecretOutput) {
			known, read = true, func(set *Set, text string) error {
				return readOutput(set, output, text, kind == v1alpha1.AnnotationSecretOutput)
			}
		}
		if !known {
			errs = append(errs, fmt.Errorf("annotation %s: is not known; known are %s", name, strings.Join(slices.Sorted(maps.Keys(readers)), ", ")))
			continue
		}
		for _, err := range parts(read(&set, annotations[name])) {
			errs = append(errs, fmt.Errorf("annotation %s: %w", name, err))
		}
	}
	if len(errs) > 0 {
		return Set{}, errors.Join(errs...)
	}
	if purge := set.Order.Purge; purge != nil {
		*purge = max(*purge, set.Order.Apply) // an object is not purged before it is applied
	}
	return set, nil
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

func readFlag(target *bool, text string) error {
	flag, err := strconv.ParseBool(strings.TrimSpace(text))
	if err != nil {
		return fmt.Errorf("%s is neither true nor false", quote(text))
	}
	*target = flag
	return nil
}

func readOrder(target *int16, text string) error {
	order, err := strconv.ParseInt(strings.TrimSpace(text), 10, 16)
	if err != nil {
		return fmt.Errorf("%s is not an integer from -32768 to 32767", quote(text))
	}
	*target = int16(order)
	return nil
}

// readAdoption reads the adoption policy. An object whose own manifest forbids adoption is not
// taken from another tool either.
func readAdoption(set *Set, text string) error {
	if err := readEnum(&set.Adoption, vocabulary.AdoptionPolicies, text); err != nil {
		return err
	}
	if !set.Adopts().Unowned {
		set.AdoptFrom, set.AdoptBeside = nil, ""
	}
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

func readOutput(set *Set, name, text string, secret bool) error {
	if !vocabulary.IsOutputName(name) {
		return errors.New(vocabulary.OutputNameRule)
	}
	if text = strings.TrimSpace(text); text == "" {
		return errors.New("the expression is empty")
	}
	set.Outputs = append(set.Outputs, Output{Name: name, Expression: text, Secret: secret})
	return nil
}

// The values of annotations that are no policies; the first is the default.
var (
	propagations = []Propagation{PropagationBackground, PropagationOrphan}
	runOns       = []RunOn{RunOnPreDelete, RunOnPostDelete}
)

// parseEnum finds the value that text names, in kebab-case or CamelCase.
func parseEnum[T ~string](values []T, text string) (T, error) {
	kebab := Kebab(text)
	for _, value := range values {
		if Kebab(string(value)) == kebab {
			return value, nil
		}
	}
	return "", fmt.Errorf("%s is not one of %s", quote(text), list(values))
}

// list returns the values as they are written in annotations.
func list[T ~string](values []T) string {
	names := make([]string, len(values))
	for i, value := range values {
		names[i] = Kebab(string(value))
	}
	return strings.Join(names, ", ")
}

// Kebab converts "SsaMerge" and "ssaMerge" to "ssa-merge", as values are written in annotations; a
// value in kebab-case stays.
func Kebab(text string) string {
	text = strings.TrimSpace(text)
	if strings.IndexFunc(text, unicode.IsUpper) < 0 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		if unicode.IsUpper(r) && i > 0 && text[i-1] != '-' {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// quote returns the text in quotes, shortened: values come from users and end in messages.
func quote(text string) string {
	const limit = 60
	if runes := []rune(text); len(runes) > limit {
		text = string(runes[:limit]) + "..."
	}
	return fmt.Sprintf("%q", text)
}

// IsUnset reports whether the value of a policy is "default", which is deprecated and
// means the same as no annotation.
func IsUnset(text string) bool { return Kebab(text) == "default" }

const (
	hintObservedGeneration = "has-observed-generation"
	hintReadyCondition     = "has-ready-condition"
	hintConditions         = "conditions"
)

// readHints reads hints such as "has-observed-generation, conditions=Synced;Healthy".
func readHints(set *Set, text string) error {
	var hints StatusHints
	var errs []error
	items := split(text)
	if len(items) == 0 {
		errs = append(errs, errors.New("names no hint"))
	}
	for _, item := range items {
		name, value, assigned := strings.Cut(item, "=")
		switch name = Kebab(name); {
		case name == hintObservedGeneration && !assigned:
			hints.ObservedGeneration = true
		case name == hintReadyCondition && !assigned:
			hints.ReadyCondition = true
		case name == hintConditions && assigned:
			conditions, err := readConditions(value)
			if err != nil {
				errs = append(errs, err)
			}
			hints.Conditions = append(hints.Conditions, conditions...)
		default:
			errs = append(errs, fmt.Errorf("%s is not one of %s, %s, %s=<type>;<type>",
				quote(item), hintObservedGeneration, hintReadyCondition, hintConditions))
		}
	}
	set.Hints = hints
	return errors.Join(errs...)
}

// readConditions reads condition types separated by semicolons.
func readConditions(text string) ([]string, error) {
	var conditions []string
	for condition := range strings.SplitSeq(text, ";") {
		condition = strings.TrimSpace(condition)
		if condition == "" || strings.ContainsAny(condition, " =\t\n") {
			return nil, fmt.Errorf("%s=%s is not a list of condition types separated by semicolons", hintConditions, quote(text))
		}
		if !slices.Contains(conditions, condition) {
			conditions = append(conditions, condition)
		}
	}
	return conditions, nil
}

// split cuts a list at commas and line ends and drops empty items.
func split(text string) []string {
	items := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' })
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return slices.DeleteFunc(items, func(item string) bool { return item == "" })
}

// identityFields identify the object. A write without them is not possible.
var identityFields = []string{"/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace"}

// readIgnoreFields reads JSON pointers (RFC 6901), separated by commas or line ends; so a pointer
// cannot hold a comma. A pointer stands for the field and everything below it; a number stands for
// the element of a list by its position in the manifest. They are added to the known pointers.
func readIgnoreFields(set *Set, text string) error {
	pointers := split(text)
	err := CheckPointers(pointers)
	pointers = append(pointers, set.IgnoreFields...)
	slices.Sort(pointers)
	set.IgnoreFields = slices.Compact(pointers)
	return err
}

// CheckPointers reports everything that is wrong with the fields to ignore.
func CheckPointers(pointers []string) error {
	var errs []error
	if len(pointers) == 0 {
		errs = append(errs, errors.New("names no field"))
	}
	for _, pointer := range pointers {
		if err := checkPointer(pointer); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func checkPointer(pointer string) error {
	if !strings.HasPrefix(pointer, "/") || pointer == "/" || strings.Contains(pointer, "//") || strings.HasSuffix(pointer, "/") {
		return fmt.Errorf("%s is not a JSON pointer, such as /spec/replicas", quote(pointer))
	}
	for i := range len(pointer) {
		if pointer[i] == '~' && !strings.HasPrefix(pointer[i+1:], "0") && !strings.HasPrefix(pointer[i+1:], "1") {
			return fmt.Errorf("%s is not a JSON pointer: after ~ comes 0 (for ~) or 1 (for /)", quote(pointer))
		}
	}
	if slices.Contains(identityFields, pointer) {
		return fmt.Errorf("%s identifies the object and cannot be ignored", quote(pointer))
	}
	return nil
}

// readDependsOn reads references, separated by commas or line ends.
func readDependsOn(set *Set, text string) error {
	var references []Reference
	var errs []error
	items := split(text)
	if len(items) == 0 {
		errs = append(errs, errors.New("names no object"))
	}
	for _, item := range items {
		reference, err := ParseReference(item)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		references = append(references, reference)
	}
	set.DependsOn = references
	return errors.Join(errs...)
}

// ParseReference reads a reference to another object. The whole form is
// group/Kind/namespace/name, where the group is empty for the core types. The
// namespace may be left out if it is the same or if there is none:
// group/Kind/name. A reference that starts with a capital letter has no group:
// Kind/namespace/name or Kind/name.
func ParseReference(text string) (Reference, error) {
	parts := strings.Split(text, "/")
	if first, _ := utf8.DecodeRuneInString(parts[0]); unicode.IsUpper(first) {
		parts = append([]string{""}, parts...)
	}
	var reference Reference
	switch len(parts) {
	case 3:
		reference = Reference{Group: parts[0], Kind: parts[1], Name: parts[2]}
	case 4:
		reference = Reference{Group: parts[0], Kind: parts[1], Namespace: parts[2], Name: parts[3]}
	}
	if reference.Kind == "" || reference.Name == "" || strings.ContainsAny(text, " \t") {
		return Reference{}, fmt.Errorf("%s is not a reference, such as apps/Deployment/shop/api (group/Kind/namespace/name), apps/Deployment/api or Secret/credentials", quote(text))
	}
	return reference, nil
}

// String returns the shortest form that ParseReference reads.
func (r Reference) String() string {
	parts := make([]string, 0, 4)
	if first, _ := utf8.DecodeRuneInString(r.Kind); r.Group != "" || !unicode.IsUpper(first) {
		parts = append(parts, r.Group)
	}
	parts = append(parts, r.Kind)
	if r.Namespace != "" {
		parts = append(parts, r.Namespace)
	}
	return strings.Join(append(parts, r.Name), "/")
}
