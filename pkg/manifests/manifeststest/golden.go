// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifeststest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/renders"
)

const updateFlag = "update"

func init() {
	// Another library may have the same idea; its flag is as good.
	if flag.Lookup(updateFlag) == nil {
		flag.Bool(updateFlag, false, "write golden files anew")
	}
}

// Update reports whether go test was called with -update.
func Update() bool {
	registered := flag.Lookup(updateFlag)
	return registered != nil && registered.Value.String() == "true"
}

// Golden compares the objects with the YAML documents in a file, usually testdata/<name>.golden,
// byte by byte and in order. With the flag -update it writes the file instead, and its folder if
// there is none. Another layout of the same content, such as another order of keys, is a
// difference, so let -update write the file. Secrets are in it as they are rendered. Values that a
// generator reports as random, by manifests.NoteRandom as charts do, are "(random)", and the time
// is the start of the year 2000.
func (c Case) Golden(t testing.TB, file string) {
	t.Helper()
	objects, err := c.stable(c.context(t))
	var got string
	if err == nil {
		got, err = marshal(objects)
	}
	if err == nil {
		err = golden(file, got, Update())
	}
	if err != nil {
		t.Error(err)
	}
}

// stable renders once, or again to find out which values are random.
func (c Case) stable(ctx context.Context) ([]*unstructured.Unstructured, error) {
	ctx, randomness := renders.WithRandomness(renders.WithTime(ctx, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)))
	first, err := c.render(ctx)
	if err != nil {
		return nil, fmt.Errorf("render: %w", err)
	}
	if !randomness.Used() {
		return first, nil
	}
	for i, object := range first {
		first[i] = object.DeepCopy()
	}
	for range 2 { // two random numbers may be equal
		again, err := c.render(ctx)
		if err != nil {
			return nil, fmt.Errorf("render: %w", err)
		}
		if len(again) != len(first) {
			return nil, fmt.Errorf("the number of objects is random: %d and %d", len(first), len(again))
		}
		for i, object := range first {
			object.Object = masked(object.Object, again[i].Object).(map[string]any)
		}
	}
	return first, nil
}

// masked returns a value without the parts that differ in another rendering.
func masked(value, other any) any {
	switch value := value.(type) {
	case map[string]any:
		if other, ok := other.(map[string]any); ok {
			for key := range value {
				value[key] = masked(value[key], other[key])
			}
			return value
		}
	case []any:
		if other, ok := other.([]any); ok && len(other) == len(value) {
			for i := range value {
				value[i] = masked(value[i], other[i])
			}
			return value
		}
	default:
		if reflect.DeepEqual(value, other) {
			return value
		}
	}
	return "(random)"
}

func golden(file, got string, update bool) error {
	if update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, []byte(got), 0o644)
	}
	want, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return fmt.Errorf("%w; run the test with -update to write it", err)
	}
	if err != nil {
		return err
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		return fmt.Errorf("%s is not what is rendered; if that is meant, run the test with -update (-want +got):\n%s", file, diff)
	}
	return nil
}
