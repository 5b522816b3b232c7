// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

func TestAPointerHasTheLiveValue(t *testing.T) {
	for name, tc := range map[string]struct {
		body, live, pointer string
		put, apply          string // the body afterwards; apply empty: as put
	}{
		"a value":                     {body: `{a: 1}`, live: `{a: 2}`, pointer: "/a", put: `{a: 2}`},
		"a map":                       {body: `{a: {b: 1}}`, live: `{a: {c: 2}}`, pointer: "/a", put: `{a: {c: 2}}`},
		"what only the manifest has":  {body: `{a: {b: 1, c: 1}}`, live: `{a: {}}`, pointer: "/a/b", put: `{a: {c: 1}}`},
		"what only the live one has":  {body: `{x: 1}`, live: `{a: {b: 1}}`, pointer: "/a/b", put: `{x: 1, a: {b: 1}}`, apply: `{x: 1}`},
		"a path that neither has":     {body: `{x: 1}`, live: `{}`, pointer: "/a/b/c", put: `{x: 1}`},
		"an element":                  {body: `{a: [{b: 1}, {b: 2}]}`, live: `{a: [{b: 3}, {b: 4}]}`, pointer: "/a/1/b", put: `{a: [{b: 1}, {b: 4}]}`},
		"a whole element":             {body: `{a: [1, 2]}`, live: `{a: [3, 4]}`, pointer: "/a/1", put: `{a: [1, 4]}`},
		"an element that is not live": {body: `{a: [{b: 1}, {b: 2}]}`, live: `{a: [{b: 3}]}`, pointer: "/a/1/b", put: `{a: [{b: 1}, {}]}`},
		"an element that is new":      {body: `{a: [{b: 1}]}`, live: `{a: [{b: 3}, {b: 4}]}`, pointer: "/a/1/b", put: `{a: [{b: 1}]}`},
		"elements of a missing list":  {body: `{x: 1}`, live: `{a: [{b: 3}]}`, pointer: "/a/0/b", put: `{x: 1}`},
		"a path through a value":      {body: `{a: 1}`, live: `{a: 2}`, pointer: "/a/b", put: `{a: 1}`},
		"special characters":          {body: `{"a/b": {"c~d": 1}}`, live: `{"a/b": {"c~d": 2}}`, pointer: "/a~1b/c~0d", put: `{"a/b": {"c~d": 2}}`},
		"an explicit null":            {body: `{a: 1}`, live: `{a: null}`, pointer: "/a", put: `{a: null}`},
	} {
		t.Run(name, func(t *testing.T) {
			live := object(t, tc.live)
			put, apply := object(t, tc.body), object(t, tc.body)
			keepLive(put, live, tc.pointer)
			applyLive(apply, live, tc.pointer)
			wantApply := tc.apply
			if wantApply == "" {
				wantApply = tc.put
			}
			if diff := cmp.Diff(object(t, tc.put), put); diff != "" {
				t.Errorf("for a PUT (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(object(t, wantApply), apply); diff != "" {
				t.Errorf("for an apply (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(object(t, tc.live), live); diff != "" {
				t.Errorf("the live object was changed:\n%s", diff)
			}
		})
	}
}
