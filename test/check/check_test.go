// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

func TestWhatIsReported(t *testing.T) {
	broken := errors.New("it is broken")
	file := filepath.Join(t.TempDir(), "golden")
	check.NoError(t, os.WriteFile(file, []byte("a\n"), 0o600))
	for name, test := range map[string]struct {
		do   func(t testing.TB)
		want string // empty: nothing
	}{
		"no error":                 {func(t testing.TB) { check.NoError(t, nil) }, ""},
		"an error":                 {func(t testing.TB) { check.NoError(t, broken); t.Error("not ended") }, "it is broken"},
		"a value":                  {func(t testing.TB) { check.Same(t, 1, check.Must(1, nil)(t)) }, ""},
		"a value with an error":    {func(t testing.TB) { check.Must(1, broken)(t); t.Error("not ended") }, "it is broken"},
		"the error of a call":      {func(t testing.TB) { check.Fails(t, check.ErrorOf(1, broken), "it", "broken") }, ""},
		"no failure":               {func(t testing.TB) { check.Fails(t, nil, "broken") }, "got no error"},
		"another failure":          {func(t testing.TB) { check.Fails(t, broken, "it", "whole") }, `"whole" is not in`},
		"any failure":              {func(t testing.TB) { check.Fails(t, broken, "") }, "in each text"},
		"a failure without a part": {func(t testing.TB) { check.Fails(t, broken) }, "in each text"},
		"all parts":                {func(t testing.TB) { check.Contains(t, "a b c", "c", "a") }, ""},
		"a missing part":           {func(t testing.TB) { check.Contains(t, "a b c", "a", "d") }, `"d" is not in`},
		"an empty part":            {func(t testing.TB) { check.Contains(t, "a b c", "a", "") }, "in each text"},
		"no part":                  {func(t testing.TB) { check.Contains(t, "a b c") }, "in each text"},
		"equal":                    {func(t testing.TB) { check.Equal(t, []int{1}, []int{1}) }, ""},
		"not equal":                {func(t testing.TB) { check.Equal(t, []int{1}, []int{2}) }, "it differs (-want +got)"},
		"not equal, by name":       {func(t testing.TB) { check.EqualNamed(t, "the list", []int{1}, nil) }, "the list (-want +got)"},
		"the same":                 {func(t testing.TB) { check.Same(t, 1, 1) }, ""},
		"not the same":             {func(t testing.TB) { check.Same(t, 1, 2) }, "it differs: got 2, want 1"},
		"not the same, by name":    {func(t testing.TB) { check.SameNamed(t, "the number", 1, 2) }, "the number: got 2, want 1"},
		"the golden content":       {func(t testing.TB) { check.Golden(t, file, "a\n", false) }, ""},
		"other content":            {func(t testing.TB) { check.Golden(t, file, "b\n", false) }, "golden (-want +got)"},
		"a missing file":           {func(t testing.TB) { check.Golden(t, file+"s", "a\n", false) }, "no such file"},
		"new content": {func(t testing.TB) {
			check.Golden(t, file+"-new", "b\n", true)
			check.Golden(t, file+"-new", "b\n", false)
		}, ""},
		"no errors":    {func(t testing.TB) { (&check.Report{}).Wants(t) }, ""},
		"other errors": {func(t testing.TB) { (&check.Report{Errors: []string{"b"}}).Wants(t, "a") }, `"a" is not in`},
		"errors":       {func(t testing.TB) { (&check.Report{Errors: []string{"a"}}).Wants(t) }, `the errors are ["a"]`},
	} {
		t.Run(name, func(t *testing.T) {
			got := check.Run(t, test.do).Errors
			if wanted := test.want != ""; len(got) > 1 || wanted != (len(got) == 1) || wanted && !strings.Contains(got[0], test.want) {
				t.Errorf("it reports %q, want %q", got, test.want)
			}
		})
	}
}
