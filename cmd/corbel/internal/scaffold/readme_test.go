// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

func TestTheTableOfFieldsFollowsFromTheTypes(t *testing.T) {
	types := "package v1\n\ntype ShopSpec struct {\n\tcomponent.TimeoutSpec `json:\",inline\"`\n\tShopValues `json:\",inline\"`\n\tother.Part `json:\",inline\"`\n" +
		"\t// Size is\n\t// the size | number.\n\t//\n\t// +kubebuilder:default=3\n\tSize *int64 `json:\"size,omitempty\"`\n\tHidden string `json:\"-\"`\n\tNone string\n}\n"
	values := "package v1\n\ntype ShopValues struct {\n\tImage *ShopImage `json:\"image,omitempty\"`\n\tHosts []ShopHost `json:\"hosts,omitzero\"`\n\tResources *corev1.ResourceRequirements `json:\"resources,omitempty\"`\n" +
		"\tLabels map[string]string `json:\"labels,omitzero\"`\n\tPort *intstr.IntOrString `json:\"port\"`\n\tAny *apiextensionsv1.JSON `json:\"any\"`\n" +
		"\t// The chart sets \"say \\\"a\\\\b\\\"\" by default.\n\tMotto *string `json:\"motto\"`\n}\n" +
		"type ShopImage struct {\n\t// +kubebuilder:default=\"a`b\"\n\tTag *string `json:\"tag\"`\n}\ntype ShopHost struct {\n\tPaths [][]string `json:\"paths\"`\n\tMore []ShopHost `json:\"-\"`\n}\n"
	files := map[string][]byte{"api/v1/shop.go": []byte(types), "api/v1/values.go": []byte(values), "api/v2/shop.go": []byte("package v2\n"), "main.go": []byte("package main\n")}
	got := check.Must(fieldTable(files, Options{Kind: "Shop", Version: "v1"}))(t)
	want := []string{
		"| field | type | default | what it is |", "|---|---|---|---|",
		"| `image.tag` | string | `a'b` |  |", "| `hosts[].paths` | list of list of string |  |  |", "| `resources` | ResourceRequirements |  |  |",
		"| `labels` | map of string |  |  |", "| `port` | integer or string |  |  |", "| `any` | any |  |  |",
		"| `motto` | string | `say \"a\\b\"` |  |",
		"| `…` | fields of Part |  |  |", "| `size` | integer | `3` | Size is the size \\| number. |",
		"| `timeout` | duration | `10m` | how long the component may take to become ready |", "",
	}
	check.Equal(t, want, strings.Split(got, "\n"))
	check.Fails(t, check.ErrorOf(fieldTable(files, Options{Kind: "Other", Version: "v1"})), "has no struct OtherSpec")
}

func TestTheReadmeListsAllFields(t *testing.T) {
	project, _ := newProject(t, Options{}, "Chart.yaml", chartHead, "values.yaml", "greeting: hello\nreplicaCount: 1\n", "templates/a.yaml", configMap)
	readme := read(t, project, "README.md")
	check.Contains(t, readme, "| `replicaCount` | integer | `1` |", "| `values` | any |", "| `suspend`, `suspendUntil`, `suspendReason` |", "| `patches`, `images` |", "| `rollbackOnFailure` |")
	if changed, err := WriteFieldTable(project); changed || err != nil {
		t.Errorf("changed %t, %v", changed, err)
	}
	spec := filepath.Join("api", "v1alpha1", "shop.go")
	writeFiles(t, project, spec, strings.Replace(read(t, project, spec), "ShopSpec struct {", "ShopSpec struct {\n\tMine bool `json:\"mine,omitempty\"`\n", 1),
		"README.md", strings.Replace(readme, "# shop-operator", "# My operator", 1))
	if changed, err := WriteFieldTable(project); !changed || err != nil || !strings.Contains(read(t, project, "README.md"), "| `mine` | boolean |  |  |") {
		t.Errorf("changed %t, %v", changed, err)
	}
	// A table that has changed on both sides is no conflict.
	report, err := updateProject(t, project, "Chart.yaml", chartHead, "values.yaml", "greeting: hello\n# How many\nreplicaCount: 2\n", "templates/a.yaml", configMap)
	readme = read(t, project, "README.md")
	if err != nil || len(report.Conflicts) > 0 || !strings.Contains(readme, "# My operator") || !strings.Contains(readme, "| `mine` |") || !strings.Contains(readme, "| `replicaCount` | integer | `2` | How many. |") {
		t.Errorf("%+v, %v:\n%s", report, err, readme)
	}
	writeFiles(t, project, "README.md", "Mine.\n")
	if changed, err := WriteFieldTable(project); changed || err != nil {
		t.Errorf("without a table: changed %t, %v", changed, err)
	}
	check.NoError(t, os.Remove(filepath.Join(project, "README.md")))
	if changed, err := WriteFieldTable(project); changed || err != nil {
		t.Errorf("without a README: changed %t, %v", changed, err)
	}
}
