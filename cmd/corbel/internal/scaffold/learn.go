// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold/values"
	"github.com/corbel-run/corbel/internal/rbacrules"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// learned is what a source says.
type learned struct {
	code values.Code
	// operator needs the rights for the kinds.
	operator rbacrules.Operator
	kinds    []rbacrules.Kind
	sample   map[string]any // values of a chart with which it renders
	// keepSample says that only the sample of the author can be rendered.
	keepSample bool
	// failure says why the default values of a chart cannot be rendered, and unrendered why no sample can be; empty if they can.
	failure, unrendered string
	// typed is the tree of the values that are typed.
	typed *values.Field
	notes []string
	// escalates is set if roles or bindings are rendered, and createsNamespaces if objects are in
	// another namespace than the component.
	escalates, createsNamespaces bool
	// fixed are the objects that the components have in common, so that there can be one only; nil until values can be rendered.
	fixed []string
	// outputs are those that the options of the project have.
	outputs []output
}

// output is an output of the option Outputs: the value of an object with a name of this pattern.
type output struct{ Name, Group, Kind, Object, Expression string }

// usualOutputs lists the outputs that a project offers, each with a field of the spec that the object must have. If a value is given,
// the field must have this value.
var usualOutputs = []struct {
	output
	field, value string
}{
	{output{Name: "host", Group: "networking.k8s.io", Kind: "Ingress", Expression: "self.spec.?rules[?0].?host"}, "rules", ""},
	{output{Name: "host", Group: "gateway.networking.k8s.io", Kind: "HTTPRoute", Expression: "self.spec.?hostnames[?0]"}, "hostnames", ""},
	{output{Name: "address", Group: "gateway.networking.k8s.io", Kind: "Gateway", Expression: "self.?status.?addresses[?0].?value"}, "listeners", ""},
	{output{Name: "address", Kind: "Service", Expression: firstAddress + ".?hostname.or(" + firstAddress + ".?ip)"}, "type", "LoadBalancer"},
}

const firstAddress = "self.?status.?loadBalancer.?ingress[?0]"

// outputsOf returns the outputs that users of the objects of the component sample want: the host of an Ingress, and the address of a load
// balancer, for example. A value that is not there is not waited for. Of two objects that a pattern matches, none is an output.
func outputsOf(objects []*unstructured.Unstructured) (all []output) {
	for _, object := range objects {
		var found output
		for _, usual := range usualOutputs {
			value, isSet, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", usual.field)
			if gvk := object.GroupVersionKind(); isSet && (usual.value == "" || value == usual.value) && usual.Group == gvk.Group && usual.Kind == gvk.Kind {
				found = usual.output
				found.Object = strings.ReplaceAll(object.GetName(), "sample", "*")
			}
		}
		if found.Name == "" || slices.ContainsFunc(all, func(other output) bool { return other.Name == found.Name }) {
			continue
		}
		if !slices.ContainsFunc(objects, func(other *unstructured.Unstructured) bool {
			matches, _ := path.Match(found.Object, other.GetName())
			return matches && other.GetKind() == found.Kind && other != object
		}) {
			all = append(all, found)
		}
	}
	return all
}

// learn reads the source in the folder of a project. It records in the options which values are typed. Samples
// are values to try a chart with, and own is what the author has made of the sample of a project that is not new.
func learn(ctx context.Context, o *Options, stage string, samples []sample, own map[string]any, isNew bool) (l learned, err error) {
	source := os.DirFS(stage)
	if o.Form == FormChart { // what is wrong with the values comes before what follows from it
		if _, _, err := allValues(source); err != nil {
			return l, err
		}
	}
	if l.kinds, err = l.kindsOf(ctx, *o, source, samples, own); err != nil {
		return l, err
	}
	if o.Form == FormChart {
		if err := l.types(o, source, isNew); err != nil {
			return l, err
		}
	}
	if l.escalates = rbacrules.Escalates(l.kinds); l.escalates {
		l.notes = append(l.notes, noteOfEscalation(*o))
	}
	if count := len(l.fixed); count > 0 {
		l.notes = append(l.notes, fmt.Sprintf("there can be one component only, because these objects have the same name for each component: %s (%d in all)",
			strings.Join(l.fixed[:min(count, 3)], ", "), count))
	}
	l.operator = rbacrules.Operator{
		Account: o.Name, Group: o.Group, Resource: o.Plural(), Namespace: "{{ .Release.Namespace }}", Namespaced: o.Namespaced,
		CreatesNamespaces: l.createsNamespaces, ReadsSecrets: l.code.HasSecrets,
	}
	if o.Impersonate {
		l.operator.Deployer = Deployer
	}
	return l, nil
}

// noteOfEscalation says what it means that an operator writes roles or bindings.
func noteOfEscalation(o Options) string {
	const may = "the manifests have roles or bindings, so the rules in deploy/templates/rbac.yaml have escalate or bind: "
	switch {
	case o.Former != nil:
		return may + "find out what the values of the chart can put into roles, because who may write the custom resource decides about it"
	case o.Patches:
		return may + "users who may write the custom resource can give themselves any right by its field patches (--patches)"
	}
	return may + "the spec has no field patches, by which users of the custom resource could give themselves any right; --patches adds it"
}

// reserved are the fields of a spec that are not those of values.
var reserved = []string{"suspend", "suspendUntil", "suspendReason", "timeout", "rollbackOnFailure", "patches", "images", "values"}

// allValues returns the tree of the values of a chart.
func allValues(source fs.FS) (*values.Field, []string, error) {
	text, err := optionalFile(source, "chart/values.yaml")
	if err != nil {
		return nil, nil, err
	}
	schema, err := optionalFile(source, "chart/values.schema.json")
	if err != nil {
		return nil, nil, err
	}
	root, notes, err := values.Learn(values.Source{Values: text, Schema: schema})
	if err != nil {
		return nil, nil, fmt.Errorf("the values of the chart: %w", err)
	}
	return root, notes, nil
}

// types writes the types of the values of a chart. If it chooses the values, it records the choice, so that a newer chart, or
// a newer program, types the same: a field that vanishes, or gets another type, loses what users have set.
func (l *learned) types(o *Options, source fs.FS, isNew bool) error {
	if o.Spec == SpecCurated && len(o.Fields) == 0 {
		root, _, err := allValues(source)
		if err != nil {
			return err
		}
		documents, err := documentsOf(source)
		if err != nil {
			return err
		}
		documents.Failure, documents.Sample = l.failure, l.sample
		var left []string
		if o.Fields, left = values.Curated(root, chartName(source), documents); len(o.Fields) == 0 {
			o.Spec = SpecValues
			if len(root.Fields) > 0 {
				l.notes = append(l.notes, "the chart has none of the values that are typed by default, so the spec has only the field values: name values by --field, or type all by --spec full")
			}
		}
		if count := len(left); count > 0 {
			l.notes = append(l.notes, fmt.Sprintf("the documents of the chart mention more values than have become fields: %s (%d in all); set them in the field values, or add them to the list fields in %s, and run corbel init --update",
				strings.Join(left[:min(count, 5)], ", "), count, recordFile))
		}
		isNew = true
	}
	root, notes, err := typedValues(o, source)
	if err != nil {
		return err
	}
	l.notes = append(notes, l.notes...)
	if isNew {
		o.Secrets = values.Secrets(root)
	}
	values.Refer(root, o.Secrets)
	if l.typed = root; len(root.Fields) > 0 {
		l.code, err = values.GoTypes(root, o.Kind)
	}
	return err
}

// documentsOf reads what a chart says about its values outside of values.yaml.
func documentsOf(source fs.FS) (values.Documents, error) {
	d := values.Documents{Templates: map[string]string{}}
	err := fs.WalkDir(source, "chart", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if name == "chart/charts" {
				return fs.SkipDir
			}
			return err
		}
		name = strings.TrimPrefix(name, "chart/")
		var to func(string)
		switch lower := strings.ToLower(name); {
		case lower == "readme.md":
			to = func(text string) { d.Readme = text }
		case lower == "questions.yaml" || lower == "questions.yml":
			to = func(text string) { d.Questions = []byte(text) }
		case name == "templates/NOTES.txt":
			to = func(text string) { d.Notes = text }
		case strings.HasPrefix(name, "templates/"):
			to = func(text string) { d.Templates[name] = text }
		default:
			return nil
		}
		text, err := fs.ReadFile(source, "chart/"+name)
		to(string(text))
		return err
	})
	return d, err
}

// typedValues returns the tree of the values of a chart that are typed, before references to Secrets take the place of some.
func typedValues(o *Options, source fs.FS) (*values.Field, []string, error) {
	root, notes, err := allValues(source)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case len(o.Fields) > 0:
		if root, err = values.Select(root, o.Fields); err != nil {
			return nil, nil, fmt.Errorf("--field, or fields in %s: %w", recordFile, err)
		}
		notes = slices.DeleteFunc(notes, func(note string) bool { return !strings.Contains(note, " is left out: ") })
	case o.Spec != SpecFull:
		return &values.Field{Type: values.Object}, nil, nil
	}
	root.Fields = slices.DeleteFunc(root.Fields, func(f *values.Field) bool {
		taken := slices.Contains(reserved, f.Key)
		if taken {
			notes = append(notes, fmt.Sprintf("the value %s has the name of a field of every component: it is set as values.%s", f.Key, f.Key))
		}
		return taken
	})
	return root, notes, nil
}

// keepTyped lets an update type the same values as before, and says which of them a newer chart has no more, or has with
// another type. The author may have added fields, also of the newer chart: those that are secret become references.
func (p *project) keepTyped(o *Options, last, next fs.FS) (notes []string, err error) {
	if o.Spec == SpecCurated && len(o.Fields) == 0 { // the author wants another choice
		return nil, nil
	}
	older, _, err := allValues(last)
	if err != nil {
		return nil, err
	}
	newer, _, err := allValues(next)
	if err != nil {
		return nil, err
	}
	previous := *o
	if len(o.Fields) > 0 {
		had, has := values.Paths(older), values.Paths(newer)
		isIn := func(field string, paths []string) bool { return slices.Contains(paths, strings.TrimSpace(field)) }
		previous.Spec, previous.Fields = SpecValues, slices.DeleteFunc(slices.Clone(o.Fields), func(field string) bool { return !isIn(field, had) })
		o.Fields = slices.DeleteFunc(o.Fields, func(field string) bool { return isIn(field, had) && !isIn(field, has) })
		if len(o.Fields) == 0 {
			o.Spec = SpecValues
		}
	}
	before, _, err := typedValues(&previous, last)
	if err != nil {
		return nil, err
	}
	after, _, err := typedValues(o, next)
	if err != nil {
		return nil, err
	}
	table := tableOf(p.base[readmeFile]) // of the fields that the spec has
	o.Secrets = append(o.Secrets, slices.DeleteFunc(values.Secrets(after), func(path string) bool {
		return slices.Contains(o.Secrets, path) || strings.Contains(table, "| `"+path+"` |")
	})...)
	now := typesOf(after)
	was := typesOf(before)
	for _, name := range slices.Sorted(maps.Keys(was)) {
		switch kind, exists := now[name]; {
		case !exists:
			notes = append(notes, fmt.Sprintf("the chart has no value %s any more: the field is removed from the spec, and components lose what they have set", name))
		case kind != was[name]:
			notes = append(notes, fmt.Sprintf("the type of the value %s changes from %s to %s: components that have set it may be refused", name, was[name], kind))
		}
	}
	return notes, nil
}

// typesOf returns the types of the values that are not objects with fields, by their paths.
func typesOf(root *values.Field) map[string]string {
	types := map[string]string{}
	var add func(prefix string, fields []*values.Field)
	add = func(prefix string, fields []*values.Field) {
		for _, f := range fields {
			at := strings.TrimPrefix(prefix+"."+f.Key, ".")
			if len(f.Fields) > 0 {
				add(at, f.Fields)
				continue
			}
			types[at] = string(f.Type)
			if f.Elem != nil {
				types[at] += " of " + string(f.Elem.Type)
			}
		}
	}
	add("", root.Fields)
	return types
}

// chartName returns the name of the chart; empty if it has none.
func chartName(source fs.FS) string {
	var head struct {
		Name string `json:"name"`
	}
	text, _ := fs.ReadFile(source, "chart/Chart.yaml") // mistakes in it are reported when the chart is loaded
	_ = yaml.Unmarshal(text, &head)
	return head.Name
}

// optionalFile reads a file; one that does not exist is empty.
func optionalFile(source fs.FS, name string) ([]byte, error) {
	content, err := fs.ReadFile(source, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// kindsOf returns the kinds of objects that the source can render, and chooses the sample.
func (l *learned) kindsOf(ctx context.Context, o Options, source fs.FS, samples []sample, own map[string]any) ([]rbacrules.Kind, error) {
	switch o.Form {
	case FormChart:
		scanned, unknown, err := rbacrules.ScanChart(source, "chart")
		if err != nil {
			return nil, err
		}
		for _, place := range unknown {
			l.notes = append(l.notes, "the kind of an object cannot be read in "+place+": add its rule to deploy/templates/rbac.yaml, if the operator lacks it")
		}
		rendered, tried, err := l.renderSamples(ctx, o, source, samples, own)
		if err != nil {
			return nil, err
		}
		kinds := rbacrules.Merge(scanned, rendered)
		more := rbacrules.Without(tried, kinds)
		if len(unknown) > 0 { // they may be what cannot be read
			return rbacrules.Merge(kinds, more), nil
		}
		for _, kind := range more {
			l.notes = append(l.notes, fmt.Sprintf("a %s is in %s, and in no template: add its rule to deploy/templates/rbac.yaml, if values of users may hold such objects", kind.Kind, strings.Join(kind.Origins, ", ")))
		}
		return kinds, nil
	case FormKustomize, FormYAML:
		generator, err := o.generator(source)
		if err != nil {
			return nil, err
		}
		return l.rendered(ctx, o, generator, nil)
	default:
		return []rbacrules.Kind{{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true, Rendered: true, Origins: []string{"generate.go"}}}, nil
	}
}

// renderSamples renders the chart with its default values, with those in its folder ci, and with those of the author.
// The first that can be rendered are those of the sample. Tried are the kinds of the other values in the folder ci.
func (l *learned) renderSamples(ctx context.Context, o Options, source fs.FS, samples []sample, own map[string]any) (all, tried []rbacrules.Kind, err error) {
	generator, err := o.generator(source)
	if err != nil {
		return nil, nil, fmt.Errorf("the chart cannot be loaded: %w", err)
	}
	if o.Former != nil && o.Former.sample != nil {
		l.sample, samples = o.Former.sample, append([]sample{{"values.yaml", []byte("{}")}}, samples...)
	}
	all, err = l.rendered(ctx, o, generator, l.sample)
	found, failure := err == nil, err
	if err != nil {
		l.failure = err.Error()
	}
	if slices.ContainsFunc(all, func(kind rbacrules.Kind) bool {
		return kind.Group == "apiregistration.k8s.io" && kind.Kind == "APIService"
	}) {
		l.notes = append(l.notes, fmt.Sprintf("the chart has an APIService, which becomes available only if its server runs: on the control plane of make run and make test none does, "+
			"so leave it out by a value in samples/%s.yaml, and run make golden", o.Variable()))
	}
	for _, sample := range samples {
		var chosen map[string]any
		if err := yaml.Unmarshal(sample.text, &chosen); err != nil {
			continue // it is no file with values
		}
		kinds, err := l.rendered(ctx, o, generator, chosen)
		if err != nil {
			continue // a file may be made for another one, or for a test that has to fail
		}
		if !found {
			l.sample, found, all = chosen, true, kinds
		}
		kinds = slices.Clone(kinds)
		for i := range kinds {
			kinds[i].Origins = []string{sample.name}
		}
		tried = rbacrules.Merge(tried, kinds)
	}
	if own != nil {
		if kinds, err := l.rendered(ctx, o, generator, own); err == nil {
			l.keepSample, found = !found, true
			all = rbacrules.Merge(all, kinds)
		}
	}
	if !found {
		l.unrendered = oneLine(failure.Error(), 600)
		l.notes = append(l.notes, fmt.Sprintf("the chart cannot be rendered with its default values: fill in the spec of samples/%s.yaml, and run make golden: %s", o.Variable(), l.unrendered))
	}
	return all, tried, nil
}

// rendered returns the kinds of what a generator renders.
func (l *learned) rendered(ctx context.Context, o Options, generator manifests.Generator, parameters map[string]any) ([]rbacrules.Kind, error) {
	ctx = manifests.Context{ReconcilerName: o.Reconciler(), Revision: 1}.In(ctx)
	objects, err := manifests.Generate(ctx, generator, "default", "sample", types.UnstructurableMap(parameters))
	if err != nil {
		return nil, err
	}
	var plain []*unstructured.Unstructured
	for _, object := range objects {
		plain = append(plain, asUnstructured(object))
	}
	l.createsNamespaces = l.createsNamespaces || !o.Namespaced && livesElsewhere(plain)
	kinds := rbacrules.OfObjects(plain)
	if l.fixed == nil { // the first values that can be rendered are those of the sample
		l.outputs = outputsOf(plain)
		another, _ := manifests.Generate(ctx, generator, "another", "second", types.UnstructurableMap(parameters)) // a source may refuse the names
		l.fixed = commonObjects(kinds, renders.SharedTypes(generator), objects, another)
	}
	return kinds, nil
}

// commonObjects returns the objects of two components that are the same ones, without a namespace or in one that the source names.
// Definitions that all components share are left out.
func commonObjects(kinds []rbacrules.Kind, shared []types.SharedType, one, another []client.Object) []string {
	title := func(object client.Object) string {
		gvk := object.GetObjectKind().GroupVersionKind()
		isOf := func(k rbacrules.Kind) bool { return !k.Namespaced && k.Kind == gvk.Kind && k.Group == gvk.Group }
		if slices.ContainsFunc(kinds, isOf) {
			return gvk.Kind + " " + object.GetName()
		}
		return gvk.Kind + " " + object.GetNamespace() + "/" + object.GetName()
	}
	same := map[string]bool{}
	for _, object := range another {
		same[title(object)] = true
	}
	for _, t := range shared {
		delete(same, "CustomResourceDefinition "+t.Name)
	}
	common := []string{}
	for _, object := range one {
		if name := title(object); same[name] && !strings.Contains(name, " /") {
			common = append(common, name)
		}
	}
	return common
}

// livesElsewhere reports whether an object is in a namespace that is neither that of the component nor among
// the objects.
func livesElsewhere(objects []*unstructured.Unstructured) bool {
	known := map[string]bool{"": true, "default": true, metav1.NamespaceSystem: true}
	for _, object := range objects {
		if object.GetKind() == "Namespace" {
			known[object.GetName()] = true
		}
	}
	return slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool { return !known[object.GetNamespace()] })
}

// asUnstructured returns an object of a generator of files, which are all unstructured.
func asUnstructured(object client.Object) *unstructured.Unstructured {
	plain, ok := object.(*unstructured.Unstructured)
	if !ok {
		plain = &unstructured.Unstructured{}
		plain.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
		plain.SetName(object.GetName())
	}
	return plain
}

// trimmed returns the end of a text that a program has printed.
func trimmed(text string) string {
	text = strings.TrimSpace(text)
	if lines := strings.Split(text, "\n"); len(lines) > 12 {
		text = "…\n" + strings.Join(lines[len(lines)-12:], "\n")
	}
	return text
}
