// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/strvals"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/document"
)

// Former describes a kind under its former operator, a Helm operator of operator-sdk.
type Former struct {
	// Plural, Singular, ShortNames and Categories are the names in the CustomResourceDefinition.
	Plural     string   `json:"plural"`
	Singular   string   `json:"singular,omitempty"`
	ShortNames []string `json:"shortNames,omitempty"`
	Categories []string `json:"categories,omitempty"`
	// Approved is the annotation api-approved.kubernetes.io of the CustomResourceDefinition, without which Kubernetes refuses the groups
	// that are reserved for it. Former versions of operator-sdk have made kinds in charts.helm.k8s.io.
	Approved string `json:"approved,omitempty"`
	// Versions are those of the CustomResourceDefinition.
	Versions []FormerVersion `json:"versions"`
	// Overrides are values that take precedence over the spec.
	Overrides map[string]any `json:"overrides,omitempty"`
	// Selector selects the components.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// MaxConcurrentReconciles is how many components are reconciled at the same time; 0 is the default.
	MaxConcurrentReconciles int `json:"maxConcurrentReconciles,omitempty"`
	// sample is the spec of the sample, and labels are its labels.
	sample map[string]any
	labels map[string]string
}

// sampleLabels returns the labels of a sample that the selector selects.
func (f *Former) sampleLabels() map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, f.labels)
	if f.Selector != nil {
		maps.Copy(labels, f.Selector.MatchLabels)
	}
	return labels
}

// FormerVersion is a version of a CustomResourceDefinition.
type FormerVersion struct {
	Name    string `json:"name"`
	Served  bool   `json:"served,omitempty"`
	Storage bool   `json:"storage,omitempty"`
}

// watch is an entry of watches.yaml. Its other fields are listed as left out.
type watch struct {
	Group, Version, Kind    string
	Chart                   string
	OverrideValues          map[string]string
	Selector                *metav1.LabelSelector
	MaxConcurrentReconciles int
}

// definition is a CustomResourceDefinition of apiextensions.k8s.io/v1 or v1beta1, without the fields that are not read.
type definition struct {
	Metadata metav1.ObjectMeta
	Spec     struct {
		Group, Scope, Version string
		Names                 struct {
			Kind, Plural, Singular string
			ShortNames, Categories []string
		}
		Versions []struct {
			FormerVersion            `json:",inline"`
			Schema                   map[string]any
			AdditionalPrinterColumns []any
		}
		Validation map[string]any
		Conversion struct{ Strategy string }
	}
}

// needless are the fields of watches.yaml that have no counterpart, with the reasons.
var needless = map[string]string{
	"reconcilePeriod":         "drift is found by watches, not by a period; the interface RequeueConfiguration adds one",
	"watchDependentResources": "all dependent objects are watched; the annotation drift-policy leaves changes of others alone",
	"dryRunOption":            "a plan asks the server by dry runs",
}

// helmOperator is the folder of a Helm operator.
type helmOperator struct {
	folder, layout string
	objects        []*unstructured.Unstructured // in the folders of definitions and samples
	// left lists the parts that are not carried over, in sentences.
	left     []string
	mistakes []error
}

func (h *helmOperator) mistake(format string, args ...any) {
	h.mistakes = append(h.mistakes, fmt.Errorf(format, args...))
}

func (h *helmOperator) leave(format string, args ...any) {
	h.left = append(h.left, fmt.Sprintf(format, args...))
}

// readHelmOperator reads the kinds of the Helm operator in a folder. The options are those that all kinds have. The error has all mistakes.
func readHelmOperator(folder string, o Options) (parts []*part, left []string, err error) {
	h := &helmOperator{folder: folder}
	h.readLayout()
	watches := h.watches()
	if len(h.mistakes) > 0 {
		return nil, nil, errors.Join(h.mistakes...)
	}
	h.readObjects()
	seen := map[string]bool{}
	for i, fields := range watches {
		var w watch
		if err := decodeFields(fields, &w); err != nil {
			h.mistake("watches.yaml, entry %d: %w", i+1, err)
			continue
		}
		if w.Kind == "" || w.Version == "" || w.Chart == "" {
			if fields["playbook"] != nil || fields["role"] != nil {
				h.mistake("watches.yaml, entry %d: it is an entry of an Ansible operator, which has no chart", i+1)
			} else {
				var missing []string
				for _, field := range []struct{ name, value string }{{"kind", w.Kind}, {"version", w.Version}, {"chart", w.Chart}} {
					if field.value == "" {
						missing = append(missing, field.name)
					}
				}
				h.mistake("watches.yaml, entry %d lacks %s", i+1, strings.Join(missing, ", "))
			}
			continue
		}
		if seen[strings.ToLower(w.Kind)] {
			h.mistake("watches.yaml, entry %d: the kind %s is there twice: a program has one reconciler for a kind, so leave one of the entries out", i+1, w.Kind)
			continue
		}
		seen[strings.ToLower(w.Kind)] = true
		h.leaveFields(w, fields)
		parts = append(parts, h.part(w, o))
	}
	if len(parts) > 1 {
		for _, p := range parts {
			p.o.Package = packageOf(p.o.Kind)
		}
	}
	h.leaveFiles()
	return parts, h.left, errors.Join(h.mistakes...)
}

// decodeFields decodes an object by the JSON names of the fields.
func decodeFields(fields map[string]any, into any) error {
	text, err := json.Marshal(fields)
	return errors.Join(err, json.Unmarshal(text, into))
}

// readLayout reads the file PROJECT, if there is one.
func (h *helmOperator) readLayout() {
	var project struct{ Layout any }
	text, err := os.ReadFile(filepath.Join(h.folder, "PROJECT"))
	if err == nil && yaml.Unmarshal(text, &project) == nil && project.Layout != nil {
		h.layout = strings.Trim(fmt.Sprint(project.Layout), "[]")
	}
}

// watches reads watches.yaml.
func (h *helmOperator) watches() (entries []map[string]any) {
	text, err := os.ReadFile(filepath.Join(h.folder, "watches.yaml"))
	switch {
	case err != nil && h.layout != "":
		h.mistake("%s is no Helm operator: it has no watches.yaml, and its PROJECT has the layout %s", h.folder, h.layout)
	case err != nil:
		h.mistake("%s is no Helm operator: it has no watches.yaml: name the folder of the project, not that of the chart", h.folder)
	default:
		if err = yaml.Unmarshal(text, &entries); err != nil {
			h.mistake("watches.yaml is no list of kinds and charts: %w", err)
		} else if len(entries) == 0 {
			h.mistake("watches.yaml has no entry")
		}
	}
	return entries
}

// readObjects reads the definitions and the samples, by the layouts of operator-sdk 1 and of its former versions.
func (h *helmOperator) readObjects() {
	for _, folder := range []string{"config/crd/bases", "config/samples", "deploy/crds"} {
		names, _ := filepath.Glob(filepath.Join(h.folder, folder, "*.yaml")) // the pattern is correct
		for _, name := range names {
			if slices.Contains(kustomizationFiles, filepath.Base(name)) {
				continue
			}
			text, err := os.ReadFile(name)
			if err == nil {
				var objects []*unstructured.Unstructured
				objects, err = document.Decode(folder+"/"+filepath.Base(name), text)
				h.objects = append(h.objects, objects...)
			}
			if err != nil {
				h.mistakes = append(h.mistakes, err)
			}
		}
	}
}

// leaveFields lists the fields of an entry that are not carried over.
func (h *helmOperator) leaveFields(w watch, fields map[string]any) {
	known := []string{"group", "version", "kind", "chart", "overrideValues", "selector", "maxConcurrentReconciles"}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if reason, ok := needless[name]; ok {
			h.leave("%s: `%s` of watches.yaml is not needed: %s.", w.Kind, name, reason)
		} else if !slices.Contains(known, name) {
			h.leave("%s: `%s` of watches.yaml is not known.", w.Kind, name)
		}
	}
}

// part returns the kind of an entry.
func (h *helmOperator) part(w watch, o Options) *part {
	o.Kind, o.Group, o.Version, o.Form, o.Spec, o.Former = w.Kind, w.Group, w.Version, FormChart, SpecValues, &Former{}
	p := &part{o: &o, source: Source{Form: FormChart, Path: h.chart(w)}}
	o.setSource(p.source)
	h.define(w, o.Former)
	o.Former.Overrides = h.overrides(w)
	if _, err := metav1.LabelSelectorAsSelector(w.Selector); err != nil {
		h.mistake("watches.yaml, kind %s: selector: %w", w.Kind, err)
	} else if w.Selector != nil && len(w.Selector.MatchLabels)+len(w.Selector.MatchExpressions) > 0 {
		o.Former.Selector = w.Selector
	}
	o.Former.MaxConcurrentReconciles = max(w.MaxConcurrentReconciles, 0)
	at := slices.IndexFunc(h.objects, func(object *unstructured.Unstructured) bool {
		gvk := object.GroupVersionKind()
		return gvk.Group == w.Group && gvk.Kind == w.Kind
	})
	if at >= 0 {
		o.Former.labels = h.objects[at].GetLabels()
		o.Former.sample, _, _ = unstructured.NestedMap(h.objects[at].Object, "spec")
	}
	return p
}

// chart returns the folder of the chart of an entry. The path may be that of the image of the operator.
func (h *helmOperator) chart(w watch) string {
	named := filepath.ToSlash(w.Chart)
	candidates := []string{path.Join("helm-charts", path.Base(named))}
	if _, below, found := strings.Cut("/"+named, "/helm-charts/"); found {
		candidates = slices.Insert(candidates, 0, path.Join("helm-charts", below))
	}
	if !path.IsAbs(named) {
		candidates = slices.Insert(candidates, 0, named)
	}
	for _, candidate := range candidates {
		folder := filepath.Join(h.folder, filepath.FromSlash(candidate))
		if _, err := os.Stat(filepath.Join(folder, "Chart.yaml")); err == nil && filepath.IsLocal(filepath.FromSlash(candidate)) {
			return folder
		}
	}
	h.mistake("watches.yaml, kind %s: there is no chart in %s: put the chart %s there", w.Kind, filepath.Join(h.folder, filepath.FromSlash(candidates[0])), w.Chart)
	return ""
}

// define reads the names and versions of a kind from its definition.
func (h *helmOperator) define(w watch, f *Former) {
	var d definition
	at := slices.IndexFunc(h.objects, func(object *unstructured.Unstructured) bool {
		d = definition{}
		return object.GetKind() == "CustomResourceDefinition" && decodeFields(object.Object, &d) == nil &&
			d.Spec.Group == w.Group && d.Spec.Names.Kind == w.Kind
	})
	if at < 0 {
		h.mistake("there is no CustomResourceDefinition of %s.%s in config/crd/bases or deploy/crds: put the definition that the cluster has there", w.Kind, w.Group)
		return
	}
	names := d.Spec.Names
	f.Plural, f.Singular, f.ShortNames, f.Categories = names.Plural, names.Singular, names.ShortNames, names.Categories
	if isReserved(w.Group) {
		f.Approved = cmp.Or(d.Metadata.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation], "unapproved, the kind of a Helm operator")
	}
	if d.Spec.Scope == "Cluster" {
		h.mistake("kind %s: the scope of its CustomResourceDefinition is Cluster: a Helm release is in a namespace, so the kind has to be Namespaced", w.Kind)
	}
	schemas := []map[string]any{d.Spec.Validation}
	columns := 0
	for _, v := range d.Spec.Versions {
		f.Versions = append(f.Versions, v.FormerVersion)
		schemas = append(schemas, v.Schema)
		columns += len(v.AdditionalPrinterColumns)
		if !versionPattern.MatchString(v.Name) {
			h.mistake("kind %s: the version %q of its CustomResourceDefinition must be a version of an API, such as v1alpha1", w.Kind, v.Name)
		}
	}
	if len(f.Versions) == 0 && d.Spec.Version != "" {
		f.Versions = []FormerVersion{{d.Spec.Version, true, true}}
	}
	if !slices.ContainsFunc(f.Versions, func(v FormerVersion) bool { return v.Name == w.Version && v.Served }) {
		h.mistake("kind %s: watches.yaml has the version %s, which its CustomResourceDefinition does not serve", w.Kind, w.Version)
	}
	if slices.ContainsFunc(schemas, func(schema map[string]any) bool {
		fields, _, _ := unstructured.NestedMap(schema, "openAPIV3Schema", "properties", "spec", "properties")
		return len(fields) > 0
	}) {
		h.leave("%s: the fields of the spec in its CustomResourceDefinition, with their validation and their defaults: the new one accepts all values. Add a values.schema.json to the chart to refuse some, and defaults to its values.yaml.", w.Kind)
	}
	if columns > 0 {
		h.leave("%s: the columns of `kubectl get` in its CustomResourceDefinition.", w.Kind)
	}
	if d.Spec.Conversion.Strategy == "Webhook" {
		h.leave("%s: the conversion webhook of its CustomResourceDefinition: all versions have the same spec now.", w.Kind)
	}
}

// overrides returns the values of an entry that take precedence over the spec. Those that depend on the environment of the operator, or are
// templates, are listed.
func (h *helmOperator) overrides(w watch) map[string]any {
	parse := strvals.ParseIntoString
	if strings.Contains(h.layout, "hybrid") {
		parse = strvals.ParseInto
	}
	var values map[string]any
	for _, key := range slices.Sorted(maps.Keys(w.OverrideValues)) {
		value := w.OverrideValues[key]
		if strings.Contains(value, "$") || strings.Contains(value, "{{") {
			h.leave("%s: `overrideValues` of watches.yaml sets `%s` by an environment variable or a template: set it in `newGenerator`.", w.Kind, key)
			continue
		}
		if values == nil {
			values = map[string]any{}
		}
		if err := parse(key+"="+value, values); err != nil {
			h.mistake("watches.yaml, kind %s: overrideValues, %s: %w", w.Kind, key, err)
		}
	}
	return values
}

// maxListed limits how many files are named.
const maxListed = 20

// leaveFiles lists the files of the operator that are not carried over.
func (h *helmOperator) leaveFiles() {
	var code, roles []string
	_ = fs.WalkDir(os.DirFS(h.folder), ".", func(name string, entry fs.DirEntry, err error) error { // an unreadable file is not listed
		switch base := path.Base(name); {
		case err != nil:
			return nil
		case entry.IsDir() && (base == "vendor" || base == "helm-charts" || base != "." && strings.HasPrefix(base, ".")):
			return fs.SkipDir
		case path.Ext(name) == ".go":
			code = append(code, "`"+name+"`")
		case path.Dir(name) == "config/rbac" && strings.HasSuffix(base, "_role.yaml") && base != "leader_election_role.yaml":
			roles = append(roles, "`"+name+"`")
		}
		return nil
	})
	if len(code) > 0 {
		h.leave("Go code: %s (%d in all). Hooks of the reconciler have their place in `options`.", strings.Join(code[:min(len(code), maxListed)], ", "), len(code))
	}
	if len(roles) > 0 {
		h.leave("Roles for users and for the former operator: %s. The new operator has its rights in `deploy/templates/rbac.yaml`.", strings.Join(roles[:min(len(roles), maxListed)], ", "))
	}
}
