// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/requirement"
	"github.com/corbel-run/corbel/internal/rights"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/status"
)

// maxRequirements is how many objects a spec may require.
//
// Unit: requirements
// Limit: the objects that a component requires; more are an error.
const maxRequirements = 32

// Requirement is what a Source has in addition if it is a requirement: it names an object of any type, which has to be ready.
// What it loads are inputs: values by their paths in the parameters.
type Requirement struct {
	APIVersion, Namespace string
	// Condition is an expression that says whether the object is ready; empty: the readiness of its type counts.
	Condition string
	// Inputs are the names of outputs of the object, by the paths.
	Inputs map[string]string
}

// Terms are what all requirements of a component have to keep to.
type Terms struct {
	// Kind is that of the component, which must not require itself.
	Kind schema.GroupKind
	// Namespaces are those of which a spec may require objects, beside its own; "*" is all, and what has no namespace.
	Namespaces []string
	// Mapper knows the resources of the types.
	Mapper meta.RESTMapper
}

func (t Terms) allow(namespace string, component metav1.Object) bool {
	return namespace == component.GetNamespace() || namespace != "" && slices.Contains(t.Namespaces, namespace) || slices.Contains(t.Namespaces, "*")
}

// requirementMistakes returns the mistakes in a requirement itself, with the paths of the fields.
func (s *Source) requirementMistakes(at string) (mistakes []error) {
	r := s.Requirement
	add := func(field string, problems ...string) {
		if len(problems) > 0 {
			mistakes = append(mistakes, fmt.Errorf("%s.%s: %s", at, field, strings.Join(problems, ", ")))
		}
	}
	gv, _ := schema.ParseGroupVersion(r.APIVersion) // empty if it is none
	add("apiVersion", append(validation.IsDNS1035Label(gv.Version), validation.IsDNS1123Subdomain(cmp.Or(gv.Group, "core"))...)...)
	add("kind", validation.IsDNS1035Label(strings.ToLower(s.Kind))...)
	add("name", validation.IsDNS1123Subdomain(s.Name)...)
	if r.Namespace != "" {
		add("namespace", validation.IsDNS1123Label(r.Namespace)...)
	}
	if err := requirement.CheckCondition(r.Condition); err != nil {
		add("condition", strings.TrimPrefix(err.Error(), "ready-when "))
	}
	for _, path := range slices.Sorted(maps.Keys(r.Inputs)) {
		if slices.Contains(strings.Split(path, "."), "") {
			add("inputs", fmt.Sprintf("%q must be a path of names with dots between them", path))
		}
		if problems := validation.IsConfigMapKey(r.Inputs[path]); len(problems) > 0 {
			add("inputs", fmt.Sprintf("%s: the name of an output: %s", path, strings.Join(problems, ", ")))
		}
	}
	return mistakes
}

// Mistakes returns the mistakes in the requirements of a component as a whole: what they name, and where their inputs go in the
// parameters.
func (t Terms) Mistakes(references []Found, component metav1.Object, parameters func() map[string]any) error {
	var mistakes []error
	count := 0
	for _, reference := range references {
		if reference.source == nil || reference.source.Requirement == nil {
			continue
		}
		count++
		r, name := reference.source.Requirement, reference.source.Name
		kind, namespace := schema.FromAPIVersionAndKind(r.APIVersion, reference.source.Kind).GroupKind(), cmp.Or(r.Namespace, component.GetNamespace())
		if kind == t.Kind && name == component.GetName() && namespace == component.GetNamespace() {
			mistakes = append(mistakes, fmt.Errorf("%s: a component cannot require itself", reference.Path))
		}
		if !t.allow(namespace, component) {
			mistakes = append(mistakes, fmt.Errorf("%s.namespace: it must be that of the component, because the option RequireNamespaces of the operator does not have %q", reference.Path, namespace))
		}
	}
	if count > maxRequirements {
		mistakes = append(mistakes, fmt.Errorf("the spec has %d requirements; at most %d are accepted", count, maxRequirements))
	}
	_, err := withInputs(references, parameters, true)
	return errors.Join(append(mistakes, err)...)
}

// Notes name the objects that inputs come from, without values.
func (t Terms) Notes(references []Found, component metav1.Object) (notes []report.Note) {
	for _, reference := range references {
		if reference.source == nil || reference.source.Requirement == nil || len(reference.source.Requirement.Inputs) == 0 {
			continue
		}
		r := reference.source.Requirement
		gvk := schema.FromAPIVersionAndKind(r.APIVersion, reference.source.Kind)
		key := report.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: cmp.Or(r.Namespace, component.GetNamespace()), Name: reference.source.Name}
		if mapping, err := t.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot {
			key.Namespace = ""
		}
		notes = append(notes, report.Note{Key: key, Message: "its outputs become the parameters " + strings.Join(slices.Sorted(maps.Keys(r.Inputs)), ", ")})
	}
	return notes
}

// WithInputs returns the parameters with the inputs that are loaded; nil if the spec has none. An input takes the place of the
// parameter at its path.
func WithInputs(references []Found, parameters func() map[string]any) map[string]any {
	with, _ := withInputs(references, parameters, false) // an input without a place was a mistake before
	return with
}

// withInputs returns the parameters with the inputs that are loaded, or with all, and the inputs that have no place.
func withInputs(references []Found, parameters func() map[string]any, all bool) (with map[string]any, err error) {
	var mistakes []error
	of := map[string]Found{}
	for _, reference := range references {
		if reference.source != nil && reference.source.Requirement != nil {
			for path := range reference.source.Requirement.Inputs {
				if other, taken := of[path]; taken {
					mistakes = append(mistakes, fmt.Errorf("%s.inputs: %s is an input of %s, too", reference.Path, path, other.Path))
				}
				of[path] = reference
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(of)) { // what is above comes first
		value, loaded := (*of[path].source.Loaded)[path]
		if with == nil && (loaded || all) {
			with = parameters()
		}
		if next, ok := put(with, strings.Split(path, "."), string(value)); !ok {
			mistakes = append(mistakes, fmt.Errorf("%s.inputs: %s is below a parameter that is no object", of[path].Path, path))
		} else if loaded || all {
			with = next
		}
	}
	return with, errors.Join(mistakes...)
}

// put returns a copy of the parameters with a value at a path. It is false if a parameter above it is no object.
func put(parameters map[string]any, path []string, value string) (map[string]any, bool) {
	next := maps.Clone(parameters)
	if next == nil {
		next = map[string]any{}
	}
	if len(path) == 1 {
		next[path[0]] = value
		return next, true
	}
	below, isObject := next[path[0]].(map[string]any)
	if !isObject && next[path[0]] != nil {
		return nil, false
	}
	below, ok := put(below, path[1:], value)
	next[path[0]] = below
	return next, ok
}

// require loads the inputs of a requirement once its object is ready. The deletion of the component needs the inputs only, and waits
// for nothing.
func (l *loader) require(ctx context.Context, reference Found) {
	source, r := reference.source, reference.source.Requirement
	of := object{kind: source.Kind, namespace: cmp.Or(r.Namespace, l.component.GetNamespace()), name: source.Name}
	waits := reference.waits(l.component)
	if !waits && (len(r.Inputs) == 0 || !l.terms.allow(of.namespace, l.component) || len(source.requirementMistakes("")) > 0) {
		return
	}
	missing, err := l.loadInputs(ctx, source, &of, waits)
	about := fmt.Sprintf("requires %s: ", report.Key{Kind: of.kind, Namespace: of.namespace, Name: of.name})
	if err != nil {
		l.absent.Failed = append(l.absent.Failed, fmt.Errorf("%s: %s%w", reference.Path, about, err))
	}
	if missing != "" && waits {
		l.absent.Missing = append(l.absent.Missing, errors.New(about+missing))
	}
}

// loadInputs loads the inputs of a requirement, or says what is missing.
func (l *loader) loadInputs(ctx context.Context, source *Source, of *object, mustBeReady bool) (missing string, err error) {
	r := source.Requirement
	gvk := schema.FromAPIVersionAndKind(r.APIVersion, source.Kind)
	mapping, err := l.terms.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return "the API server does not serve the type " + r.APIVersion + " " + source.Kind, nil
	} else if err != nil {
		return "", fmt.Errorf("find its type: %w", err)
	}
	scoped := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if of.resource = mapping.Resource; !scoped {
		of.namespace = ""
	}
	if scoped && of.namespace == "" {
		return "the requirement must name the namespace, because the component has none", nil
	} else if !l.terms.allow(of.namespace, l.component) {
		return `it has no namespace, and the option RequireNamespaces of the operator does not have "*"`, nil
	}
	read := l.read(ctx, *of)
	if apierrors.IsNotFound(read.err) {
		return "it does not exist", nil
	} else if read.err != nil {
		return "", fmt.Errorf("read it: %w", withMissingRule(read.err, *of))
	}
	now := requirement.Status(&read.object, r.Condition)
	if now.Readiness != status.Ready && mustBeReady {
		message := strings.Replace(now.Message, "ready-when", "the condition", 1)
		return "not Ready: " + strings.TrimPrefix(message, "condition Ready is False: "), nil
	}
	loaded, lacks := content{}, []string{}
	for path, name := range r.Inputs {
		value, is, err := l.output(ctx, &read.object, name)
		if err != nil {
			return "", err
		} else if loaded[path] = value; !is {
			lacks = append(lacks, name)
		}
	}
	if len(lacks) > 0 {
		slices.Sort(lacks)
		return "it has no output " + strings.Join(slices.Compact(lacks), ", ") + " yet", nil
	}
	*source.Loaded = loaded
	return "", nil
}

// withMissingRule adds the rule that the operator lacks to the error of a read that the server forbids.
func withMissingRule(err error, o object) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	var lacking []rights.Right
	for _, verb := range []string{"get", "list", "watch"} {
		lacking = append(lacking, rights.Right{Group: o.resource.Group, Resource: cmp.Or(o.resource.Resource, "secrets"), Namespace: o.namespace, Verb: verb})
	}
	return fmt.Errorf("the operator lacks rights: %s; add them to its role, which a project has in deploy/templates/rbac.yaml: %w", rights.Aggregate(lacking), err)
}

// output returns an output of an object, if it has it. The Secret of the secret outputs must have the object as an owner, so that
// a forged status gives no access to another Secret.
func (l *loader) output(ctx context.Context, of *unstructured.Unstructured, name string) (value []byte, is bool, err error) {
	if names, _, _ := unstructured.NestedStringSlice(of.Object, "status", "secretOutputs"); !slices.Contains(names, name) {
		text, is, _ := unstructured.NestedString(of.Object, "status", "outputs", name)
		return []byte(text), is, nil
	}
	confidential.Note(ctx)
	secret := object{kind: Secret, namespace: of.GetNamespace(), name: vocabulary.OutputsSecret(of.GetName())}
	read := l.read(ctx, secret)
	if client.IgnoreNotFound(read.err) != nil {
		return nil, false, fmt.Errorf("read Secret %s/%s: %w", secret.namespace, secret.name, withMissingRule(read.err, secret))
	}
	owned := slices.ContainsFunc(read.owners, func(owner metav1.OwnerReference) bool { return owner.UID == of.GetUID() })
	value, is = read.content[name]
	return value, is && owned, nil
}
