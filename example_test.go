// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package corbel_test

import (
	"embed"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/operator"
)

//go:embed all:examples/shop/chart
var files embed.FS

// An operator for a Helm chart. It is compiled and not run: it takes a cluster.
func Example() {
	operator.Main(operator.Options[*v1alpha1.Shop]{
		Name:          "shop.example.com",
		SchemeBuilder: &v1alpha1.SchemeBuilder,
		Generator: func() (manifests.Generator, error) {
			return helm.New(files, "examples/shop/chart", helm.Options{})
		},
	})
}

// TestTheOperatorOfThePackageCommentIsTheExample compares the text of doc.go with the example, which
// is compiled.
func TestTheOperatorOfThePackageCommentIsTheExample(t *testing.T) {
	comment, example := between(t, "doc.go", "//\t//go:embed", "//\t}\n"), between(t, "example_test.go", "//go:embed", "\n}\n")
	comment = strings.ReplaceAll("\n"+comment, "\n//", "\n")
	comment = strings.ReplaceAll(comment, "\n\t", "\n")
	example = strings.Replace(example, "// An operator for a Helm chart. It is compiled and not run: it takes a cluster.\n", "", 1)
	example = strings.Replace("\n"+example, "func Example()", "func main()", 1)
	if diff := cmp.Diff(strings.TrimSpace(example), strings.TrimSpace(comment)); diff != "" {
		t.Errorf("the package comment (-example +comment):\n%s", diff)
	}
}

// TestTheChartOfTheExampleIsRead reads the chart as the example does.
func TestTheChartOfTheExampleIsRead(t *testing.T) {
	if _, err := helm.New(files, "examples/shop/chart", helm.Options{}); err != nil {
		t.Error(err)
	}
}

// between returns the lines of a file from the first text to the next text after it, both included.
func between(t *testing.T, file, first, last string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(content), first)
	inside, _, ends := strings.Cut(rest, last)
	if !found || !ends {
		t.Fatalf("%s has no lines from %q to %q", file, first, last)
	}
	return first + inside + last
}
