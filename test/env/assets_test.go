// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/test/check"
)

// writePrograms makes a folder with programs, of which none does anything.
func writePrograms(t *testing.T, folder string, programs ...string) {
	t.Helper()
	err := os.MkdirAll(folder, 0o700)
	for _, program := range programs {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, program), nil, 0o700))
	}
	check.NoError(t, err)
}

func TestAssets(t *testing.T) {
	root := check.Must(filepath.EvalSymlinks(t.TempDir()))(t)
	own, partial, nested, ours := filepath.Join(root, "own"), filepath.Join(root, "partial"), filepath.Join(root, "checkout/nested"), filepath.Join(root, "checkout/bin/k8s")
	writePrograms(t, own, programsFor(false)...)
	writePrograms(t, partial, "etcd")
	writePrograms(t, ours, programsFor(false)...)
	writePrograms(t, nested)
	for folder, module := range map[string]string{filepath.Dir(nested): modulePath, nested: modulePath + "/nested"} {
		check.NoError(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte("module "+module+"\n"), 0o600))
	}
	for name, test := range map[string]struct{ dir, variable, want, wantErr string }{
		"a user's own folder is respected":                    {nested, own, own, ""},
		"one that lacks a program is passed by":               {nested, partial, ours, ""},
		"outside of a checkout, what it lacks is said":        {root, partial, "", AssetsVariable + " does not suffice: no program kube-apiserver, kubectl in " + partial},
		"outside of a checkout, the variable to set is named": {root, "", "", "set " + AssetsVariable},
	} {
		t.Chdir(test.dir)
		t.Setenv(AssetsVariable, test.variable)
		got, err := Assets()
		if got != test.want || (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
			t.Errorf("%s: got %q and the error %v, want %q and %q", name, got, err, test.want, test.wantErr)
		}
	}
}

func TestParseAuditLog(t *testing.T) {
	const watch = `"verb":"watch","requestURI":"/api/v1/pods?watch=true","user":{"username":"u"},"responseStatus":{"code":200}}` + "\n"
	for name, test := range map[string]struct {
		log     string
		want    []AuditEvent
		wantErr bool
	}{
		"a watch counts when it starts, not when it ends": {
			log:  `{"stage":"ResponseStarted",` + watch + `{"stage":"ResponseComplete",` + watch,
			want: []AuditEvent{{User: "u", Verb: "watch", URI: "/api/v1/pods?watch=true", Code: 200}},
		},
		"a line that is being written is left out": {log: `{"stage":"Respon`},
		"a line that is no event is an error":      {log: "nonsense\n", wantErr: true},
	} {
		got, err := parseAuditLog([]byte(test.log))
		if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != test.wantErr {
			t.Errorf("%s: the error is %v, events (-want +got):\n%s", name, err, diff)
		}
	}
}
