// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
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
	content, err := os.ReadFile("../../../../api/v1alpha1/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestMarkersConstantsAndAnnotationsHaveTheValuesOfTheList(t *testing.T) {
	policies, annotations := source(t, "policies.go"), source(t, "annotations.go")
	markers := map[string][]string{}
	for _, match := range regexp.MustCompile(`validation:Enum=(\S+)\ntype (\w+) string`).FindAllStringSubmatch(policies, -1) {
		markers[match[2]] = strings.Split(match[1], ";")
	}
	if diff := cmp.Diff(values, markers); diff != "" {
		t.Errorf("markers (-list +got):\n%s", diff)
	}
	constants := map[string][]string{}
	for _, match := range regexp.MustCompile(`\n\t\w+ (\w+) = "(\w+)"`).FindAllStringSubmatch(policies, -1) {
		constants[match[1]] = append(constants[match[1]], match[2])
	}
	if diff := cmp.Diff(values, constants); diff != "" {
		t.Errorf("constants (-list +got):\n%s", diff)
	}
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
		if diff := cmp.Diff(written, formats[name]); diff != "" {
			t.Errorf("annotation of %s (-list +got):\n%s", name, diff)
		}
	}
}

// meanings is what the methods say about each value.
var meanings = map[string][]string{
	"IfUnowned": nil, "Never": nil, "Always": nil, "Ignore": {"tolerates drift"},
	"OnObjectChange": nil, "OnObjectOrComponentChange": nil, "Once": nil, "OncePerManifest": nil,
	"Replace": nil, "SsaMerge": {"applies"}, "SsaOverride": {"applies"}, "Recreate": {"recreates"}, "RecreateOnImmutable": {"recreates"},
	"Delete": nil, "Orphan": {"orphans on apply", "orphans on delete"}, "OrphanOnApply": {"orphans on apply"}, "OrphanOnDelete": {"orphans on delete"},
	"Repair": nil, "Report": {"tolerates drift"},
	"Create": nil, "DoNotCreate": nil, "Manage": nil, "Skip": nil, "DetachOnDelete": nil,
}

func TestEachValueHasItsMeaning(t *testing.T) {
	for name, list := range values {
		for _, value := range list {
			var set Set
			switch name {
			case "UpdatePolicy":
				set.Update = v1alpha1.UpdatePolicy(value)
			case "DeletePolicy":
				set.Delete = v1alpha1.DeletePolicy(value)
			case "DriftPolicy":
				set.Drift = v1alpha1.DriftPolicy(value)
			default:
				if _, known := meanings[value]; !known {
					t.Errorf("%s %s has no row", name, value)
				}
				continue
			}
			var got []string
			for meaning, holds := range map[string]bool{
				"applies": set.UsesServerSideApply(), "recreates": set.Recreates(), "tolerates drift": set.ToleratesDrift(),
				"orphans on apply": OrphansOnApply(set.Delete), "orphans on delete": OrphansOnDelete(set.Delete),
			} {
				if holds {
					got = append(got, meaning)
				}
			}
			slices.Sort(got)
			if want, known := meanings[value]; !known || !slices.Equal(want, got) {
				t.Errorf("%s %s: %v, want %v", name, value, got, want)
			}
		}
	}
}
