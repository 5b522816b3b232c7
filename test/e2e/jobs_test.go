// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/test/wire"
)

// jobs counts how often each Job was created, by its name, the version of its template and
// the revision that it is for: work must not be done twice.
type jobs struct {
	mu      sync.Mutex
	created map[string]int
	// writes are the requests about Jobs that were answered, for the text of a failure.
	writes []string
}

// note looks at a request that was answered. A dry run creates nothing.
func (j *jobs) note(r *http.Request, response *http.Response) {
	if response == nil || r.Method == http.MethodGet || r.URL.Query().Has("dryRun") || !strings.Contains(r.URL.Path, "/jobs") {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes = append(j.writes, fmt.Sprintf("%s %s %s %d", time.Now().Format("15:04:05.000"), r.Method, r.URL.Path, response.StatusCode))
	if response.StatusCode != http.StatusCreated {
		return
	}
	var manifest struct {
		Metadata struct {
			Name        string
			Annotations map[string]string
		}
		Spec struct {
			Template struct {
				Metadata struct{ Annotations map[string]string }
			}
		}
	}
	if json.Unmarshal(bodyOf(r), &manifest) != nil {
		return
	}
	name := manifest.Metadata.Name
	if name == "" {
		name = path.Base(r.URL.Path)
	}
	if j.created == nil {
		j.created = map[string]int{}
	}
	name += " of version " + manifest.Spec.Template.Metadata.Annotations["version"]
	if revision := manifest.Metadata.Annotations[reconcilerName+"/"+v1alpha1.AnnotationRevision]; revision != "" {
		name += " for revision " + revision
	}
	j.created[name]++
}

// bodyOf returns the body of a request that is sent or was sent; nil if there is none.
func bodyOf(r *http.Request) []byte {
	if r.GetBody == nil {
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	content, _ := io.ReadAll(body)
	return content
}

// watch counts the Jobs that an operator creates.
func (j *jobs) watch(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		j.note(r, response)
		return response, err
	})
}

// check expects every Job to have been created at most once, and those that are wanted, if any
// are named, and no others.
func (j *jobs) check(t *testing.T, want []string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for name, times := range j.created {
		if times > 1 {
			t.Errorf("Job %s was created %d times:\n%s", name, times, strings.Join(j.writes, "\n"))
		}
	}
	got := slices.Sorted(maps.Keys(j.created))
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); want != nil && diff != "" {
		t.Errorf("Jobs that were created (-want +got):\n%s", diff)
	}
}
