// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifeststest_test

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
)

func TestDigestFindsWhatIsWrong(t *testing.T) {
	type options struct {
		Name   string
		Limits struct{ Bytes int }
		Hook   func()
		hidden int
	}
	calls := 0
	made := func(digest string) func() manifests.Generator {
		return func() manifests.Generator {
			calls++
			return manifests.WithDigest(generate(func(map[string]any) []client.Object { return nil }), digest)
		}
	}
	tests := []struct {
		name   string
		same   func() manifests.Generator
		digest func(options) string
		want   []string
	}{
		{"all is well", made("1"), func(o options) string { return fmt.Sprint(o.Name, o.Limits, o.Hook != nil) }, nil},
		{"none", made(""), func(o options) string { return fmt.Sprint(o.Name, o.Limits, o.Hook != nil) }, []string{"has no digest"}},
		{"another one each time", func() manifests.Generator { return made(fmt.Sprint(calls))() }, func(o options) string { return fmt.Sprint(o.Name, o.Limits, o.Hook != nil) }, []string{"in the same way has another digest"}},
		{"a limit is forgotten", made(fmt.Sprint("", false)), func(o options) string { return fmt.Sprint(o.Name, o.Hook != nil) }, []string{"Limits.Bytes has the digest of"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			others := map[string]func() manifests.Generator{"the same options": made(test.digest(options{Name: "other", hidden: 1}))}
			for name, changed := range manifeststest.EachOption(t, options{}, nil) {
				others[name] = made(test.digest(changed))
			}
			check(t, func(t testing.TB) { manifeststest.Digest(t, test.same, others) }).wants(t, test.want...)
		})
	}
}
