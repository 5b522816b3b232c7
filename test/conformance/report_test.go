// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/corbel-run/corbel/test/check"
)

// report is what a run has found, to be sent to the project.
type report struct {
	cluster  *cluster
	started  time.Time
	rows     strings.Builder
	failures strings.Builder
	count    map[string]int // of stories, by their result
}

// add adds a story that has ended.
func (r *report) add(name string, t *testing.T, took time.Duration, errors []string) {
	result := "passed"
	switch {
	case t.Failed():
		result = "failed"
		fmt.Fprintf(&r.failures, "\n### %s\n\n```text\n%s\n```\n", name, r.anonymous(t.Context(), strings.Join(errors, "\n")))
	case t.Skipped():
		result = "skipped"
	}
	if r.count == nil {
		r.count = map[string]int{}
	}
	r.count[result]++
	fmt.Fprintf(&r.rows, "| %s | %s | %.1f |\n", name, result, took.Seconds())
}

// write writes the report as Markdown.
func (r *report) write(t *testing.T, path string) {
	if path == "" || r.cluster.interrupted.Load() {
		return
	}
	where := "a cluster"
	if r.cluster.simulated {
		where = "the control plane for tests, with simulated pods"
	}
	pods := "the default"
	if *image != defaultImage {
		pods = "another one"
	}
	text := fmt.Sprintf("# Conformance of Corbel\n\n| | |\n|---|---|\n| result | %d passed, %d failed, %d skipped |\n| Kubernetes | %s, %s |\n| where | %s |\n"+
		"| Corbel | %s |\n| image of the pods | %s |\n| date | %s |\n\n| story | result | seconds |\n|---|---|---|\n%s",
		r.count["passed"], r.count["failed"], r.count["skipped"], r.cluster.version.GitVersion, r.cluster.version.Platform, where,
		*revision, pods, r.started.UTC().Format(time.DateOnly), r.rows.String())
	if r.failures.Len() > 0 {
		text += "\n## Failures\n" + r.failures.String()
	}
	if unlisted := r.cluster.unlisted; len(unlisted) > 0 {
		text += "\n## Types that could not be listed at the end\n\n```text\n"
		for _, name := range slices.Sorted(maps.Keys(unlisted)) {
			text += r.anonymous(t.Context(), fmt.Sprintf("%s: %v\n", name, unlisted[name]))
		}
		text += "```\n"
	}
	check.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// addresses are IP addresses with an optional port, and users in the messages of the server, which may be quoted twice.
var addresses = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b|\[?([0-9a-fA-F]{1,4}(:[0-9a-fA-F]{1,4}){7}|[0-9a-fA-F:]*::[0-9a-fA-F:]*)\]?(:\d+)?` +
	`|User "(\\.|[^"\\])*"|User \\"(\\\\(\\.|[^\\])|[^"\\])*\\"`)

// anonymous removes the names and addresses of the cluster, and folders of the user, from a text.
func (r *report) anonymous(ctx context.Context, text string) string {
	names := []string{r.cluster.kubeconfig, r.cluster.config.Host}
	if address, err := url.Parse(r.cluster.config.Host); err == nil && address.Hostname() != "" {
		names = append(names, address.Host, address.Hostname())
	}
	nodes := &corev1.NodeList{}
	if err := r.cluster.client.List(context.WithoutCancel(ctx), nodes); err == nil {
		for _, node := range nodes.Items {
			names = append(names, node.Name)
		}
	}
	home, _ := os.UserHomeDir()
	root, _ := filepath.Abs(filepath.Join("..", ".."))
	names = append(names, home, root)
	if *image != defaultImage {
		registry, _, _ := strings.Cut(*image, "/")
		names = append(names, *image, registry)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return len(name) < 2 }) // such as the home "/"
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		text = strings.ReplaceAll(text, name, "(removed)")
	}
	return addresses.ReplaceAllString(text, "(removed)")
}
