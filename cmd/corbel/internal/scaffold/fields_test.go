// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/test/check"
)

func TestPasswordsAreReferences(t *testing.T) {
	chart := []string{"Chart.yaml", chartHead, "templates/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		"values.yaml", "auth: {password: x, existingSecret: \"\"}\nreplicaCount: 2\nresources: {limits: {cpu: 1}}\npaths: [a]\nmotto: \"a: b\"\n"}
	project, report := newProject(t, Options{}, chart...)
	if len(report.Notes) > 0 {
		t.Errorf("got the notes %q", report.Notes)
	}
	record := check.Must(readRecord(project))(t)
	check.Equal(t, []string{"auth.password", "auth.existingSecret"}, record.Secrets)
	for name, parts := range map[string][]string{
		"api/v1alpha1/values.go":     {"Password *component.SecretKeyReference", "ExistingSecret *component.SecretReference"},
		"api/v1alpha1/shop.go":       {"s.SetSecrets(values)"},
		"deploy/templates/rbac.yaml": {"# The Secrets that specs refer to.\n- {apiGroups: [\"\"], resources: [\"secrets\"], verbs: [get, list, watch]}"},
		"README.md":                  {"| `auth.password` | SecretKeyReference |  | The chart has a default. |", "| `replicaCount` | integer | `2` |  |", "A `SecretKeyReference` names"},
	} {
		check.Contains(t, read(t, project, name), parts...)
	}
	sample := read(t, project, "samples/shop.yaml")
	const head, fields = "apiVersion: shop.example.com/v1alpha1\nkind: Shop\nmetadata:\n  name: sample\nspec:\n  values: {}\n  # The fields of the spec, with the defaults of the chart; my-secret is an example:\n",
		"  # auth:\n  #   password:\n  #     key: password\n  #     name: my-secret\n  #   existingSecret:\n  #     name: my-secret\n  # replicaCount: 2\n  # resources:\n  #   limits:\n  #     cpu: 1\n  # motto: 'a: b'\n"
	check.SameNamed(t, "the sample", head+fields, sample)
	var object map[string]any
	check.NoError(t, yaml.Unmarshal([]byte(head+strings.ReplaceAll(fields, "# ", "")), &object))

	// The author wants texts, as a project of an earlier version has them, and has edited the sample.
	edited := strings.Replace(sample, "# replicaCount: 2", "replicaCount: 3", 1)
	writeFiles(t, project, recordFile, strings.Replace(read(t, project, recordFile), "secrets:\n- auth.password\n- auth.existingSecret\n", "", 1), "samples/shop.yaml", edited)
	report, err := updateProject(t, project, append(chart, "values.yaml", "auth: {password: x, existingSecret: \"\"}\nreplicaCount: 4\nresources: {}\nmotto: \"\"\n")...)
	if err != nil || len(report.Conflicts) > 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	check.Contains(t, read(t, project, "api/v1alpha1/values.go"), "Password *string", "The chart sets 4 by default.")
	check.SameNamed(t, "the sample that the author has edited", edited, read(t, project, "samples/shop.yaml"))
}

func TestAFieldThatTheAuthorAdds(t *testing.T) {
	chart := []string{"Chart.yaml", chartHead, "templates/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "values.yaml", "auth: {password: x}\nreplicaCount: 2\n"}
	project, _ := newProject(t, Options{Fields: []string{"replicaCount"}}, chart...)
	add := func(path string) {
		record := read(t, project, recordFile)
		writeFiles(t, project, recordFile, strings.Replace(record, "fields:\n", "fields:\n- "+path+"\n", 1))
	}
	add("auth.password")
	check.Must(updateProject(t, project))(t)
	check.Contains(t, read(t, project, "api/v1alpha1/values.go"), "Password *component.SecretKeyReference")

	// It is a value of the newer chart, which is taken over at the same time.
	newer := append(chart, "values.yaml", "auth: {password: x}\ntoken: \"\"\nreplicaCount: 2\n")
	add("token")
	report := check.Must(updateProject(t, project, newer...))(t)
	check.Contains(t, read(t, project, "api/v1alpha1/values.go"), "Token *component.SecretKeyReference", "Password *component.SecretKeyReference")
	check.Equal(t, []string{"auth.password", "token"}, check.Must(readRecord(project))(t).Secrets)
	check.Equal(t, []string(nil), report.Notes)
	add("tokn")
	check.Fails(t, check.ErrorOf(updateProject(t, project)), `fields in corbel.yaml: the chart has no values with these names: "tokn" (like "token")`)
}

func TestValuesThatFindNoPlaceAreNoted(t *testing.T) {
	var values strings.Builder
	for i := range 26 {
		fmt.Fprintf(&values, "v%d: 1\n", i)
	}
	_, report := newProject(t, Options{}, "Chart.yaml", chartHead, "values.yaml", values.String(), "README.md", "```\n"+values.String()+"```\n")
	check.Equal(t, []string{"the documents of the chart mention more values than have become fields: v24, v25 (2 in all); set them in the field values, or add them to the list fields in corbel.yaml, and run corbel init --update"}, report.Notes)
}
