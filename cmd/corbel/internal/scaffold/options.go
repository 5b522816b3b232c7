// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/mod/module"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options are what an author decides about a project. They are recorded in the project, so that
// an update asks for nothing.
type Options struct {
	// Name is the name of the operator, which is the last element of its folder.
	Name string `json:"name"`
	// Module is the Go module of the project.
	Module string `json:"module"`
	// Kind, Group and Version are those of the component.
	Kind    string `json:"kind"`
	Group   string `json:"group"`
	Version string `json:"version"`
	// Spec says which values of a chart are typed.
	Spec SpecMode `json:"spec,omitempty"`
	// Fields are the paths of the values to type, in place of those that SpecCurated chooses. What it
	// has chosen for a new project is recorded here, so that an update types the same values.
	Fields []string `json:"fields,omitempty"`
	// Secrets are the paths of the typed values that are references to Secrets: passwords, tokens, and the names of Secrets.
	// What a new project has is recorded, because another type of a field would refuse what users have set.
	Secrets []string `json:"secrets,omitempty"`
	// Namespaced gives the operator rights in its own namespace only.
	Namespaced bool `json:"namespaced,omitempty"`
	// Impersonate lets service accounts in the namespaces of components write their objects.
	Impersonate bool `json:"impersonate,omitempty"`
	// Patches adds the field patches to the spec also of an operator that writes roles or bindings.
	Patches bool `json:"patches,omitempty"`
	// Origin is the name of the source, without the folders that lead to it, or its address.
	Origin string `json:"origin,omitempty"`
	// Digest identifies the content of a source that has an address.
	Digest string `json:"digest,omitempty"`
	// Subcharts are those that were fetched because the source lacks them.
	Subcharts []Subchart `json:"subcharts,omitempty"`
	// Form is the form of the source.
	Form Form `json:"form"`
	// Overlay is the folder of the kustomization that is built, below the folder that holds all files that it refers to. It is empty
	// if the two are the same folder.
	Overlay string `json:"overlay,omitempty"`
	// Former describes the kind under a Helm operator; nil for a new kind.
	Former *Former `json:"former,omitempty"`
	// Left lists the parts of a Helm operator that are not carried over, in sentences.
	Left []string `json:"left,omitempty"`
	// Package is the folder and the Go package of a kind; empty if the project has one kind only.
	Package string `json:"package,omitempty"`
	// Kinds are the kinds of a project with several; those fields that are about a kind are empty then.
	Kinds []Options `json:"kinds,omitempty"`
}

// SpecMode says which values of a chart are typed fields of the spec.
type SpecMode string

// The modes.
const (
	// SpecCurated types up to two dozen values that users need most.
	SpecCurated SpecMode = "curated"
	// SpecFull types all values.
	SpecFull SpecMode = "full"
	// SpecValues types none.
	SpecValues SpecMode = "values"
)

// Form is the form of a source.
type Form string

// The forms.
const (
	FormChart     Form = "chart"
	FormKustomize Form = "kustomize"
	FormYAML      Form = "yaml"
	FormGo        Form = "go"
	// FormOperator is the folder of a Helm operator. The kinds of the project have the form chart.
	FormOperator Form = "operator"
)

var (
	// The name of a list of the kind is a label of DNS, too.
	kindPattern    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,58}$`)
	versionPattern = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
)

// validate fills in defaults, and lists all mistakes.
func (o *Options) validate() error {
	if o.Version == "" {
		o.Version = "v1alpha1"
	}
	if o.Spec == "" {
		o.Spec = SpecCurated
	}
	if o.Module == "" {
		o.Module = o.Group + "/" + o.Name
	}
	var mistakes []error
	mistake := func(format string, args ...any) { mistakes = append(mistakes, fmt.Errorf(format, args...)) }
	// In YAML, "on" and "2048" are no texts.
	if problems := validation.IsDNS1035Label(o.Name); len(problems) > 0 || len(o.Name) < 4 || o.Name == "true" || o.Name == "false" || o.Name == "null" {
		mistake("the name of the folder, %q, becomes the name of the operator: it must have at least 4 small letters, digits and dashes, and begin with a letter", o.Name)
	}
	if !kindPattern.MatchString(o.Kind) {
		mistake("--kind %q: must be a word of at most 59 letters and digits that begins with a capital letter, such as Shop", o.Kind)
	} else if o.Variable() == "groupversion" || o.Kind == "SchemeBuilder" {
		mistake("--kind %q: must not be GroupVersion or SchemeBuilder, which are names of the project", o.Kind)
	} else if strings.HasSuffix(o.Kind, "List") || strings.HasSuffix(o.Kind, "Spec") || strings.HasSuffix(o.Kind, "Status") || strings.HasSuffix(o.Kind, "Values") {
		mistake("--kind %q: must not end in List, Spec, Status or Values, because types of the project do", o.Kind)
	}
	if problems := validation.IsDNS1123Subdomain(o.Group); len(problems) > 0 || !strings.Contains(o.Group, ".") {
		mistake("--group %q: must be a domain, such as shop.example.com", o.Group)
	} else if len(o.Plural()+"."+o.Group) > validation.DNS1123SubdomainMaxLength {
		mistake("--group %q: is too long: with the kind, it must not have more than %d characters", o.Group, validation.DNS1123SubdomainMaxLength)
	} else if o.Former == nil && isReserved(o.Group) {
		mistake("--group %q: is reserved for Kubernetes", o.Group)
	}
	if !versionPattern.MatchString(o.Version) {
		mistake("--version %q: must be a version of an API, such as v1alpha1", o.Version)
	}
	if err := module.CheckImportPath(o.Module); err != nil {
		mistake("--module %q: is not the path of a Go module: %w", o.Module, err)
	}
	switch o.Spec {
	case SpecCurated, SpecFull, SpecValues:
	default:
		mistake("--spec %q: must be curated, full or values", o.Spec)
	}
	if o.Form != FormChart && (o.Spec != SpecCurated || len(o.Fields) > 0) {
		mistake("--spec and --field are for charts: only a chart has values")
	}
	return errors.Join(mistakes...)
}

// isReserved reports whether a group belongs to Kubernetes. The CustomResourceDefinitions of such groups need an annotation.
func isReserved(group string) bool {
	return strings.HasSuffix(group, ".k8s.io") || strings.HasSuffix(group, ".kubernetes.io")
}

// setSource records the source.
func (o *Options) setSource(source Source) {
	if o.Form = source.Form; source.Path != "" {
		o.Origin, o.Digest = cmp.Or(source.Origin, filepath.Base(source.Path)), source.Digest
	}
}

// Plural returns the resource of the component, by the rules of English that Kubernetes uses for its kinds. The
// CustomResourceDefinition has it from a marker, so that no other rules count.
func (o Options) Plural() string {
	singular := strings.ToLower(o.Kind)
	switch {
	case o.Former != nil:
		return o.Former.Plural
	case strings.HasSuffix(singular, "s"), strings.HasSuffix(singular, "x"), strings.HasSuffix(singular, "z"), strings.HasSuffix(singular, "ch"), strings.HasSuffix(singular, "sh"):
		return singular + "es"
	case strings.HasSuffix(singular, "y") && len(singular) > 1 && !strings.ContainsRune("aeiou", rune(singular[len(singular)-2])):
		return strings.TrimSuffix(singular, "y") + "ies"
	}
	return singular + "s"
}

// SourceFolder returns the folder of the project that is rendered; empty for a generator in Go.
func (o Options) SourceFolder() string { return path.Join(folders[o.Form], o.Overlay) }

// Receiver returns the name of the receiver of the methods of the component.
func (o Options) Receiver() string { return string(unicode.ToLower(rune(o.Kind[0]))) }

// Singular returns the singular name of the resource.
func (o Options) Singular() string {
	if o.Former != nil && o.Former.Singular != "" {
		return o.Former.Singular
	}
	return o.Variable()
}

// Reconciler returns the name of the reconciler, which differs from those of the other kinds of the project.
func (o Options) Reconciler() string {
	if o.Package != "" {
		return o.Variable() + "." + o.Group
	}
	return o.Group
}

// packageOf returns the package of a kind. The name is no keyword, and no other folder of a project.
func packageOf(kind string) string {
	name := strings.ToLower(kind)
	if token.IsKeyword(name) || slices.Contains([]string{"main", "deploy", "bin", "vendor", "internal", "testdata"}, name) {
		name += "kind"
	}
	return name
}

// Variable returns the kind as the name of a variable or file.
func (o Options) Variable() string { return strings.ToLower(o.Kind) }

// API returns the import path of the types.
func (o Options) API() string { return path.Join(o.Module, o.Package, "api", o.Version) }
