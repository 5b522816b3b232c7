// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folderOf makes a folder that holds the programs, of which none does anything.
func folderOf(t *testing.T, programs ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, program := range programs {
		if err := os.WriteFile(filepath.Join(folder, program), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestAssets(t *testing.T) {
	small := folderOf(t, programsFor(false)...)
	partial := folderOf(t, "etcd")
	checkout := t.TempDir()
	ours := filepath.Join(checkout, "bin", "k8s")
	nested := filepath.Join(checkout, "examples", "nested")
	for _, err := range []error{
		os.MkdirAll(filepath.Dir(ours), 0o700), os.MkdirAll(nested, 0o700),
		os.Rename(folderOf(t, programsFor(true)...), ours),
		os.WriteFile(filepath.Join(checkout, "go.mod"), []byte("module "+modulePath+"\n\ngo 1.26.0\n"), 0o600),
		os.WriteFile(filepath.Join(nested, "go.mod"), []byte("module "+modulePath+"/examples/nested\n"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := t.TempDir()

	for _, test := range []struct {
		name, dir, variable string
		cluster             bool
		want                string
		wantErr             []string
	}{
		{"a user's own folder is respected", checkout, small, false, small, nil},
		{"a user's own folder that lacks a program is passed by", checkout, small, true, ours, nil},
		{"without a user's own folder, the repository's is used", checkout, "", true, ours, nil},
		{"the repository is found from a nested module", nested, "", false, ours, nil},
		{"outside of the repository, the user's own folder is enough", elsewhere, small, false, small, nil},
		{"nothing is found", elsewhere, "", false, "", []string{"not inside a checkout", "set KUBEBUILDER_ASSETS"}},
		{"nothing that suffices is found", elsewhere, partial, false, "", []string{
			"not inside a checkout", "KUBEBUILDER_ASSETS does not suffice: no program kube-apiserver, kubectl in " + partial + ": run `make controlplane`",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(test.dir)
			t.Setenv(AssetsVariable, test.variable)
			got, err := Assets(programsFor(test.cluster)...)
			if resolved, e := filepath.EvalSymlinks(test.want); e == nil && got != test.want {
				test.want = resolved // a temporary folder may be behind a link
			}
			if got != test.want || (err == nil) != (test.wantErr == nil) {
				t.Errorf("Assets returns %q and %v, want %q", got, err, test.want)
			}
			for _, part := range test.wantErr {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("the error is %v, want it to hold %q", err, part)
				}
			}
		})
	}
}
