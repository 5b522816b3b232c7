// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// written is a scope as namespace/name; * is all.
func written(at scope) string {
	text := func(part string) string { return map[bool]string{true: "*", false: part}[part == ""] }
	return text(at.namespace) + "/" + text(at.name)
}

func read(text string) scope {
	namespace, name, _ := strings.Cut(text, "/")
	return scope{secrets, strings.TrimPrefix(namespace, "*"), strings.TrimPrefix(name, "*")}
}

func TestWiderWatchesReplaceManyNarrowOnesOnlyWhenTheyShowSomething(t *testing.T) {
	for name, test := range map[string]struct {
		wanted, running, synced, want string
	}{
		"nothing":         {},
		"a few":           {wanted: "a/1 b/1", want: "a/1 b/1"},
		"up to the limit": {wanted: "a/1 a/2 a/3 a/4", want: "a/1 a/2 a/3 a/4"},
		"more, before the wide one shows anything":   {wanted: "a/1 a/2 a/3 a/4 a/5", want: "a/* a/1 a/2 a/3 a/4"},
		"those that run go on":                       {wanted: "a/1 a/2 a/3 a/4 a/5", running: "a/5", want: "a/* a/5 a/1 a/2 a/3"},
		"more":                                       {wanted: "a/1 a/2 a/3 a/4 a/5", running: "a/*", synced: "a/*", want: "a/*"},
		"fewer again, but not by much":               {wanted: "a/1 a/2 a/3 a/4", running: "a/*", synced: "a/*", want: "a/*"},
		"fewer again":                                {wanted: "a/1 a/2 a/3", running: "a/*", synced: "a/*", want: "a/1 a/2 a/3"},
		"all of a namespace are asked for":           {wanted: "a/* a/1", want: "a/* a/1"},
		"all of a namespace are shown":               {wanted: "a/* a/1 b/1", running: "a/*", synced: "a/*", want: "a/* b/1"},
		"all are asked for":                          {wanted: "*/* a/1", want: "*/* a/1"},
		"all are shown":                              {wanted: "*/* a/1", running: "*/*", synced: "*/*", want: "*/*"},
		"more namespaces than the limit":             {wanted: "a/1 b/1 c/1 d/1 e/1 f/1 g/1", want: "*/* a/1 b/1 c/1 d/1 e/1 f/1 g/1"},
		"more namespaces than the limit, all shown":  {wanted: "a/1 b/1 c/1 d/1 e/1 f/1 g/1", running: "*/*", synced: "*/*", want: "*/*"},
		"fewer namespaces again":                     {wanted: "a/1 b/1 c/1 d/1 e/1", running: "*/*", synced: "*/*", want: "a/1 b/1 c/1 d/1 e/1"},
		"objects without a namespace, too many":      {wanted: "*/1 */2 */3 */4 */5", want: "*/* */1 */2 */3 */4"},
		"objects without a namespace, all are shown": {wanted: "*/1 */2 */3 */4 */5", running: "*/*", synced: "*/*", want: "*/*"},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := map[scope]bool{}
			for _, text := range strings.Fields(test.wanted) {
				wanted[read(text)] = true
			}
			var got []string
			for _, at := range arrange(secrets, wanted, limits{perNamespace: 4, perType: 6}, func(at scope) watchState {
				return watchState{
					running: strings.Contains(" "+test.running+" ", " "+written(at)+" "),
					synced:  strings.Contains(" "+test.synced+" ", " "+written(at)+" "),
				}
			}) {
				got = append(got, written(at))
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNewsToAnOwner(t *testing.T) {
	for name, test := range map[string]struct {
		observed          string
		deletionOnly      bool
		version, progress string
		want              bool
	}{
		"as it was observed":                 {observed: "5", version: "5", progress: "9"},
		"newer":                              {observed: "5", version: "7", progress: "7", want: true},
		"the watch lags":                     {observed: "5", version: "4", progress: "4"},
		"not there, as was observed":         {progress: "9"},
		"it appeared":                        {version: "7", progress: "7", want: true},
		"it has gone":                        {observed: "5", progress: "9", want: true},
		"not there yet":                      {observed: "5", progress: "4"},
		"newer, but only its end counts":     {observed: "5", deletionOnly: true, version: "7", progress: "7"},
		"gone, and its end counts":           {observed: "5", deletionOnly: true, progress: "7", want: true},
		"versions that cannot be compared":   {observed: "x", version: "y", progress: "y", want: true},
		"gone, with a progress of some kind": {observed: "5", progress: "x", want: true},
	} {
		mine := &subscription{observed: test.observed, deletionOnly: test.deletionOnly}
		if got := mine.isNews(test.version, test.progress); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
		if mine.isNews(test.version, test.progress) {
			t.Errorf("%s: news twice", name)
		}
	}
}
