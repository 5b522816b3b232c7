// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/corbel-run/corbel/test/check"
)

// The flag kubeconfig is that of controller-runtime.
var (
	image    = flag.String("image", defaultImage, "an image with the programs sleep, true and false, for the pods of the stories")
	every    = flag.Int("crashes", 8, "the operator crashes at one in so many points before and after its writes")
	path     = flag.String("report", "", "the file that the report is written to")
	revision = flag.String("revision", "unknown", "the revision of Corbel, for the report")
)

// defaultImage is small, and comes from a registry without a limit for anonymous users.
const defaultImage = "registry.k8s.io/e2e-test-images/busybox:1.36.1-1"

// story is a part of the life of components, which ends with nothing left.
type story struct {
	name string
	play func(t testing.TB, c *cluster)
}

// storyLimit ends the waits of a story that goes on for so long; its cleanup, and the next stories, follow.
const storyLimit = time.Hour

// limited replaces the context of a test.
type limited struct {
	testing.TB
	ctx context.Context
}

// Context is the context of the story.
func (l limited) Context() context.Context { return l.ctx }

var (
	firstStories = []story{{"prepare the cluster", prepare}}
	lastStories  = []story{{"a scaffolded chart", scaffoldedChart}, {"nothing is left in the cluster", nothingIsLeft}}
)

// TestConformance plays all stories, one after the other: a cluster that others use shall not notice them.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which is left out with -short")
	}
	ctrl.SetLogger(logr.Discard()) // a story says what has failed
	c := connect(t)
	r := &report{cluster: c, started: time.Now()}
	t.Cleanup(func() { r.write(t, *path) })
	t.Cleanup(func() { check.NoError(t, c.sweep(context.WithoutCancel(t.Context()))) })
	stories := slices.Concat(firstStories, lifeStories, updateStories(), objectStories(), adoptionStories(), namespaceStories(), rightsStories, lastStories)
	for n, s := range stories {
		passed := t.Run(s.name, func(t *testing.T) {
			started, told := time.Now(), &check.Report{}
			// It runs after the cleanups of the story, which can fail, too.
			t.Cleanup(func() {
				for _, text := range told.Logs {
					t.Log(text)
				}
				for _, text := range told.Errors {
					t.Error(text)
				}
				r.add(s.name, t, time.Since(started), told.Errors)
			})
			ctx, cancel := context.WithTimeout(t.Context(), storyLimit)
			defer cancel()
			told = check.Run(t, func(t testing.TB) { s.play(limited{t, ctx}, c) })
		})
		if n == 0 && !passed {
			return // the other stories need what the first one prepares
		}
	}
}

// Another run may have created the definition at the same moment. The cluster has no client: a request would panic.
func TestARunThatHasCreatedNothingRemovesNothing(t *testing.T) {
	check.NoError(t, (&cluster{}).sweep(t.Context()))
}
