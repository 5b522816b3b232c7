// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// history is a server with the objects of one type. It notes the requests, and what a
// Reflector makes of its answers.
type history struct {
	mu       sync.Mutex
	version  int
	objects  map[types.NamespacedName]string
	current  *watch.FakeWatcher
	refusal  error
	noted    []string
	attempts []int
}

func (h *history) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noted = append(h.noted, fmt.Sprintf(format, args...))
}

// take returns what was noted since it was last called.
func (h *history) take() string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	noted := h.noted
	h.noted = nil
	return strings.Join(noted, ", ")
}

func (h *history) answer(request string) error {
	h.note("%s", request)
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refusal
}

// refuse makes the server answer all requests with an error.
func (h *history) refuse(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refusal = err
}

func (h *history) List(context.Context, metav1.ListOptions) (map[types.NamespacedName]string, metav1.ListMeta, error) {
	if err := h.answer("list"); err != nil {
		return nil, metav1.ListMeta{}, err
	}
	return h.objects, metav1.ListMeta{ResourceVersion: strconv.Itoa(h.version)}, nil
}

func (h *history) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	request := "watch from " + options.ResourceVersion
	if options.SendInitialEvents != nil {
		request = "watch all"
	}
	if err := h.answer(request); err != nil {
		return nil, err
	}
	h.current = watch.NewFakeWithChanSize(10, false)
	if options.SendInitialEvents != nil {
		for name, version := range h.objects {
			h.current.Add(objectOf(name, version))
		}
		end := objectOf(types.NamespacedName{}, strconv.Itoa(h.version))
		end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		h.current.Action(watch.Bookmark, end)
	}
	return h.current, nil
}

func (h *history) Convert(object runtime.Object) (string, bool) {
	return object.(*metav1.PartialObjectMetadata).ResourceVersion, true
}

func objectOf(name types.NamespacedName, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, ResourceVersion: version}}
}

func (h *history) Listing() {}

func (h *history) Replace(objects map[types.NamespacedName]string, version string, streaming bool) {
	h.note("all %d at %s, streaming %t", len(objects), version, streaming)
}

func (h *history) Set(name types.NamespacedName, _, version string) {
	h.note("set %s at %s", name.Name, version)
}
func (h *history) Delete(name types.NamespacedName, _, version string) {
	h.note("delete %s at %s", name.Name, version)
}
func (h *history) Progress(version string) { h.note("progress %s", version) }
func (h *history) Watching(bool)           {}

func (h *history) Failed(_ error, attempt int) (time.Duration, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts = append(h.attempts, attempt)
	return time.Second, attempt < 5
}

// reflected runs a test with a Reflector that has taken over an object.
func reflected(t *testing.T, test func(*testing.T, *history)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &history{version: 7, objects: map[types.NamespacedName]string{{Namespace: "shop", Name: "a"}: "5"}}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { NewReflector(h, h, metav1.ListOptions{}).Run(ctx) })
		if got := h.take(); got != "watch all, all 1 at 7, streaming true" {
			t.Errorf("in the beginning: %s", got)
		}
		test(t, h)
		cancel()
		running.Wait()
	})
}

func TestAReflectorTakesOverEventsAndGoesOnAfterTheEndOfAWatch(t *testing.T) {
	reflected(t, func(t *testing.T, h *history) {
		a := types.NamespacedName{Namespace: "shop", Name: "a"}
		h.current.Modify(objectOf(a, "8"))
		h.current.Action(watch.Bookmark, objectOf(types.NamespacedName{}, "9"))
		h.current.Delete(objectOf(a, "10"))
		time.Sleep(stable)
		h.current.Stop()
		if got := h.take(); got != "set a at 8, progress 9, delete a at 10, watch from 10" {
			t.Errorf("got: %s", got)
		}
		if len(h.attempts) > 0 {
			t.Error("the end in good order is a failure")
		}
	})
}

func TestOnlyAServerThatIsBusyOrDownIsWatchedFromTheSameVersion(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		next string
	}{
		"it is down":               {syscall.ECONNREFUSED, "watch from 7"},
		"it has too much to do":    {apierrors.NewTooManyRequests("later", 1), "watch from 7"},
		"the version has expired":  {apierrors.NewResourceExpired("too old"), "watch all, all 1 at 7, streaming true"},
		"it does not know it yet":  {apierrors.NewTimeoutError("Too large resource version", 1), "watch all, all 1 at 7, streaming true"},
		"it refuses for a moment":  {apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", nil), "watch all, all 1 at 7, streaming true"},
		"the credentials are over": {apierrors.NewUnauthorized("expired"), "watch all, all 1 at 7, streaming true"},
	} {
		t.Run(name, func(t *testing.T) {
			reflected(t, func(t *testing.T, h *history) {
				time.Sleep(stable)
				h.refuse(test.err)
				h.current.Stop()
				if got := h.take(); got != "watch from 7" {
					t.Errorf("after the end of the watch: %s", got)
				}
				h.refuse(nil)
				time.Sleep(time.Second)
				if got := h.take(); got != test.next {
					t.Errorf("after the refusal: %s, want %s", got, test.next)
				}
				if diff := cmp.Diff([]int{0}, h.attempts); diff != "" {
					t.Errorf("failed attempts (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestAReflectorEndsWhenItsHandlerSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &history{refusal: apierrors.NewInternalError(syscall.EIO)}
		NewReflector(h, h, metav1.ListOptions{}).Run(t.Context())
		if diff := cmp.Diff([]int{0, 1, 2, 3, 4, 5}, h.attempts); diff != "" {
			t.Errorf("failed attempts (-want +got):\n%s", diff)
		}
	})
}
