// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
)

// jobs counts how often each Job was created, by its name and the version of its
// template: work must not be done twice.
type jobs struct {
	mu      sync.Mutex
	created map[string]int
}

// note looks at a request that was answered. A dry run creates nothing.
func (j *jobs) note(r *http.Request, response *http.Response) {
	if response == nil || r.URL.Query().Has("dryRun") || response.StatusCode != http.StatusCreated || r.GetBody == nil || !strings.Contains(r.URL.Path, "/jobs") {
		return
	}
	body, err := r.GetBody()
	if err != nil {
		return
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return
	}
	var manifest struct {
		Metadata struct{ Name string }
		Spec     struct {
			Template struct {
				Metadata struct{ Annotations map[string]string }
			}
		}
	}
	if json.Unmarshal(content, &manifest) != nil {
		return
	}
	name := manifest.Metadata.Name
	if name == "" {
		name = path.Base(r.URL.Path)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.created == nil {
		j.created = map[string]int{}
	}
	j.created[name+" of version "+manifest.Spec.Template.Metadata.Annotations["version"]]++
}

// checkJobs expects every Job to have been created at most once.
func (c *crasher) checkJobs(t *testing.T) {
	t.Helper()
	c.jobs.mu.Lock()
	defer c.jobs.mu.Unlock()
	for name, times := range c.jobs.created {
		if times > 1 {
			t.Errorf("Job %s was created %d times", name, times)
		}
	}
}

func TestADryRunCreatesNoJob(t *testing.T) {
	t.Parallel()
	const manifest = `{"metadata": {"name": "work"}, "spec": {"template": {"metadata": {"annotations": {"version": "1"}}}}}`
	counts := &jobs{}
	for _, query := range []string{"?dryRun=All", "?fieldManager=test"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://test/apis/batch/v1/namespaces/test/jobs"+query, strings.NewReader(manifest))
		if err != nil {
			t.Fatal(err)
		}
		counts.note(r, &http.Response{StatusCode: http.StatusCreated})
	}
	if times := counts.created["work of version 1"]; times != 1 {
		t.Errorf("counted %d times, want once", times)
	}
}
