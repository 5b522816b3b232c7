// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/test/check"
)

func texts[T ~string](values []T) []string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return texts
}

// values are the lists of vocabulary, by the name of the type.
var values = map[string][]string{
	"AdoptionPolicy": texts(vocabulary.AdoptionPolicies), "ReconcilePolicy": texts(vocabulary.ReconcilePolicies), "UpdatePolicy": texts(vocabulary.UpdatePolicies),
	"DeletePolicy": texts(vocabulary.DeletePolicies), "DriftPolicy": texts(vocabulary.DriftPolicies),
	"MissingNamespacesPolicy": texts(vocabulary.MissingNamespacesPolicies), "ManagementPolicy": texts(vocabulary.ManagementPolicies),
}

func source(t *testing.T, file string) string {
	t.Helper()
	content := check.Must(os.ReadFile("../../../../api/v1alpha1/" + file))(t)
	return string(content)
}

func TestMarkersConstantsAndAnnotationsHaveTheValuesOfTheList(t *testing.T) {
	policies, annotations := source(t, "policies.go"), source(t, "annotations.go")
	markers := map[string][]string{}
	for _, match := range regexp.MustCompile(`validation:Enum=(\S+)\ntype (\w+) string`).FindAllStringSubmatch(policies, -1) {
		markers[match[2]] = strings.Split(match[1], ";")
	}
	check.EqualNamed(t, "markers", values, markers)
	constants := map[string][]string{}
	for _, match := range regexp.MustCompile(`\n\t\w+ (\w+) = "(\w+)"`).FindAllStringSubmatch(policies, -1) {
		constants[match[1]] = append(constants[match[1]], match[2])
	}
	check.EqualNamed(t, "constants", values, constants)
	formats := map[string][]string{}
	for _, match := range regexp.MustCompile(`// Format: one of (.*)\n(?:\t//.*\n)*\tAnnotation(\w+) =`).FindAllStringSubmatch(annotations, -1) {
		if _, policy := values[match[2]]; policy {
			formats[match[2]] = strings.Split(match[1], ", ")
		}
	}
	for name, list := range values {
		var written []string
		for _, value := range list {
			written = append(written, Kebab(value))
		}
		if name == "MissingNamespacesPolicy" { // it has no annotation
			written = nil
		}
		check.EqualNamed(t, "annotation of "+name, written, formats[name])
	}
}

// meanings are what the methods and the table of adoptions say about each value, by the name of the type.
var meanings = map[string]map[string][]string{
	"AdoptionPolicy": {
		"IfUnowned": {"adopts earlier incarnations", "adopts unowned"}, "Never": nil,
		"Always": {"adopts earlier incarnations", "adopts owned", "adopts unowned"}, "Ignore": {"adopts earlier incarnations", "ignores others"},
	},
	"ReconcilePolicy":         {"OnObjectChange": nil, "OnObjectOrComponentChange": nil, "Once": nil, "OncePerManifest": nil},
	"UpdatePolicy":            {"Replace": nil, "SsaMerge": {"applies"}, "SsaOverride": {"applies"}, "Recreate": {"recreates"}, "RecreateOnImmutable": {"recreates"}},
	"DeletePolicy":            {"Delete": nil, "Orphan": {"orphans on apply", "orphans on delete"}, "OrphanOnApply": {"orphans on apply"}, "OrphanOnDelete": {"orphans on delete"}},
	"DriftPolicy":             {"Repair": nil, "Report": {"tolerates drift"}, "Ignore": {"tolerates drift"}},
	"MissingNamespacesPolicy": {"Create": nil, "DoNotCreate": nil},
	"ManagementPolicy":        {"Manage": nil, "Skip": nil, "DetachOnDelete": nil},
}

func TestEachValueHasItsMeaning(t *testing.T) {
	if len(vocabulary.Adoptions) != len(vocabulary.AdoptionPolicies) {
		t.Errorf("%d adoption policies, and %d with a meaning", len(vocabulary.AdoptionPolicies), len(vocabulary.Adoptions))
	}
	for name, list := range values {
		for _, value := range list {
			var set Set
			switch name {
			case "AdoptionPolicy":
				set.Adoption = v1alpha1.AdoptionPolicy(value)
			case "UpdatePolicy":
				set.Update = v1alpha1.UpdatePolicy(value)
			case "DeletePolicy":
				set.Delete = v1alpha1.DeletePolicy(value)
			case "DriftPolicy":
				set.Drift = v1alpha1.DriftPolicy(value)
			}
			var got []string
			for meaning, holds := range map[string]bool{
				"adopts unowned": set.Adopts().Unowned, "adopts earlier incarnations": set.Adopts().EarlierIncarnation, "adopts owned": set.Adopts().Owned,
				"ignores others": set.Adopts().IgnoresOthers,
				"applies":        set.UsesServerSideApply(), "recreates": set.Recreates(), "tolerates drift": set.ToleratesDrift(),
				"orphans on apply": OrphansOnApply(set.Delete), "orphans on delete": OrphansOnDelete(set.Delete),
			} {
				if holds {
					got = append(got, meaning)
				}
			}
			slices.Sort(got)
			if want, known := meanings[name][value]; !known || !slices.Equal(want, got) {
				t.Errorf("%s %s: %v, want %v", name, value, got, want)
			}
		}
	}
}
