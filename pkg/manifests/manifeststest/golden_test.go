// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifeststest_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
	"github.com/corbel-run/corbel/pkg/types"
)

// updating runs f as if go test had been called with -update.
func updating(t *testing.T, f func()) {
	t.Helper()
	before := flag.Lookup("update").Value.String()
	defer func() { _ = flag.Set("update", before) }()
	if err := flag.Set("update", "true"); err != nil {
		t.Fatal(err)
	}
	f()
}

// The example needs a test to run in.
func TestExample(t *testing.T) { testApp(t) }

func TestGoldenComparesWithWhatUpdateWrote(t *testing.T) {
	value := "1"
	c := manifeststest.Case{Parameters: types.UnstructurableMap{}, Generator: generate(func(map[string]any) []client.Object {
		return []client.Object{configMap("b", value), configMap("a", "2")}
	})}
	file := filepath.Join(t.TempDir(), "folder", "x.golden")
	golden := func(t testing.TB) { c.Golden(t, file) }
	check(t, golden).wants(t, "run the test with -update to write it")
	updating(t, func() { check(t, golden).wants(t) })
	text, err := os.ReadFile(file)
	want := "apiVersion: v1\ndata:\n  key: \"1\"\nkind: ConfigMap\nmetadata:\n  name: b\n---\napiVersion: v1\ndata:\n  key: \"2\"\nkind: ConfigMap\nmetadata:\n  name: a\n"
	if err != nil || string(text) != want {
		t.Errorf("error %v, the file holds:\n%s", err, text)
	}
	check(t, golden).wants(t)
	value = "3"
	check(t, golden).wants(t, "x.golden is not what is rendered", `"3"`)
}

func TestGoldenMasksWhatIsRandom(t *testing.T) {
	count := 0
	c := manifeststest.Case{Generator: manifests.GeneratorFunc(func(ctx context.Context, _, _ string, _ types.Unstructurable) ([]client.Object, error) {
		manifests.NoteRandom(ctx)
		count++
		text := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {key: '%d', same: x, at: '%d'}}", count, manifests.Now(ctx).Year())
		objects, err := document.Decode("a", []byte(text))
		return []client.Object{objects[0]}, err
	})}
	file := filepath.Join(t.TempDir(), "x.golden")
	updating(t, func() { check(t, func(t testing.TB) { c.Golden(t, file) }).wants(t) })
	text, err := os.ReadFile(file)
	if want := "data:\n  at: \"2000\"\n  key: (random)\n  same: x\n"; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("error %v, the file holds:\n%s", err, text)
	}
	check(t, func(t testing.TB) { c.Golden(t, file) }).wants(t)
}
