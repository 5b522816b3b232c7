// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifeststest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	got, err := renders.GoldenText(c.context(t), c.render)
	if err == nil {
		err = golden(file, got, Update())
	}
	if err != nil {
		t.Error(err)
	}
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
