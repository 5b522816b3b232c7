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

	"github.com/corbel-run/corbel/test/check"
)

// history is a server with the objects of one type. It notes the requests, and what a
// Reflector makes of its answers.
type history struct {
	mu      sync.Mutex
	version int
	objects map[types.NamespacedName]string
	current *watch.FakeWatcher
	refusal error
	// endless: a watch does not say when it has sent all objects.
	endless bool
	// expires: the continue tokens of pages expire at once.
	expires  bool
	noted    []string
	attempts []int
}

func (h *history) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noted = append(h.noted, fmt.Sprintf(format, args...))
}

// take returns what was noted since it was last called.
func (h *history) drain() string {
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

func (h *history) List(_ context.Context, options metav1.ListOptions) (map[types.NamespacedName]string, metav1.ListMeta, error) {
	if err := h.answer("list"); err != nil {
		return nil, metav1.ListMeta{}, err
	}
	metadata := metav1.ListMeta{ResourceVersion: strconv.Itoa(h.version)}
	switch {
	case h.expires && options.Continue != "":
		return nil, metav1.ListMeta{}, apierrors.NewResourceExpired("the continue token is too old")
	case h.expires && options.Limit > 0:
		metadata.Continue = "more"
	}
	return h.objects, metadata, nil
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
	if options.SendInitialEvents != nil && !h.endless {
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
		check.SameNamed(t, "in the beginning", "watch all, all 1 at 7, streaming true", h.drain())
		test(t, h)
		cancel()
		running.Wait()
	})
}

func TestAReflectorHandlesEventsAndGoesOnAfterTheEndOfAWatch(t *testing.T) {
	reflected(t, func(t *testing.T, h *history) {
		a := types.NamespacedName{Namespace: "shop", Name: "a"}
		h.current.Modify(objectOf(a, "8"))
		h.current.Action(watch.Bookmark, objectOf(types.NamespacedName{}, "9"))
		h.current.Delete(objectOf(a, "10"))
		time.Sleep(stable)
		h.current.Stop()
		check.Same(t, "set a at 8, progress 9, delete a at 10, watch from 10", h.drain())
		if len(h.attempts) > 0 {
			t.Error("the end in good order is a failure")
		}
	})
}

func TestOnlyAServerThatIsBusyIsWatchedFromTheSameVersion(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		next string
	}{
		"it is down":               {syscall.ECONNREFUSED, "watch all, all 1 at 7, streaming true"},
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
				check.SameNamed(t, "after the end of the watch", "watch from 7", h.drain())
				h.refuse(nil)
				time.Sleep(time.Second)
				check.SameNamed(t, "after the refusal", test.next, h.drain())
				check.EqualNamed(t, "failed attempts", []int{0}, h.attempts)
			})
		})
	}
}

func TestAWatchThatEndsWithAnErrorStartsAgainWithAllObjectsUnlessTheServerIsBusy(t *testing.T) {
	for reason, next := range map[metav1.StatusReason]string{
		metav1.StatusReasonExpired:         "watch all, all 0 at 9, streaming true",
		metav1.StatusReasonInternalError:   "watch all, all 0 at 9, streaming true",
		metav1.StatusReasonTooManyRequests: "watch from 7",
	} {
		t.Run(string(reason), func(t *testing.T) {
			reflected(t, func(t *testing.T, h *history) {
				h.objects, h.version = nil, 9
				h.current.Error(&metav1.Status{Status: metav1.StatusFailure, Reason: reason})
				time.Sleep(time.Second)
				check.Same(t, next, h.drain())
				check.EqualNamed(t, "failed attempts", []int{0}, h.attempts)
			})
		})
	}
}

// A server that does not know of such watches ignores that it is asked for all objects.
func TestAWatchThatNeverSaysThatAllObjectsWereSentIsGivenUpAlsoIfTheTypeIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := types.NamespacedName{Namespace: "shop", Name: "a"}
		h := &history{version: 7, objects: map[types.NamespacedName]string{a: "5"}, endless: true}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { NewReflector(h, h, metav1.ListOptions{}).Run(ctx) })
		for start := time.Now(); time.Since(start) < initialLimit; time.Sleep(20 * time.Second) {
			synctest.Wait()
			h.current.Modify(objectOf(a, "8"))
		}
		check.Same(t, "watch all, list, all 1 at 7, streaming false, watch from 7", h.drain())
		cancel()
		running.Wait()
	})
}

func TestAListWithExpiredPagesIsReadInOnePiece(t *testing.T) {
	reflected(t, func(t *testing.T, h *history) {
		h.refuse(apierrors.NewBadRequest("no such option"))
		time.Sleep(stable)
		h.current.Stop()
		h.drain() // the watch that goes on is refused, so all objects are read
		h.refuse(nil)
		h.endless, h.expires = true, true
		h.drain()
		time.Sleep(time.Minute)
		if got := h.drain(); !strings.Contains(got, "list, list, list, all 1 at 7, streaming false") {
			t.Errorf("got: %s", got)
		}
	})
}

func TestWatchesThatEndSoonButInGoodOrderAreNotTriedLessAndLessOften(t *testing.T) {
	reflected(t, func(t *testing.T, h *history) {
		for range 3 {
			time.Sleep(15 * time.Second)
			h.current.Stop()
			time.Sleep(time.Second)
			h.drain()
		}
		if diff := cmp.Diff([]int{0, 0}, h.attempts); diff != "" { // the first one brought all objects
			t.Errorf("failed attempts (-want +got):\n%s", diff)
		}
	})
}

// An API server ends watches that cannot keep up with a burst of writes.
func TestWatchesThatBringEventsFollowEachOtherAtOnce(t *testing.T) {
	reflected(t, func(t *testing.T, h *history) {
		begun := time.Now()
		for version := 8; version < 28; version++ {
			h.current.Modify(objectOf(types.NamespacedName{Namespace: "shop", Name: "a"}, strconv.Itoa(version)))
			synctest.Wait()
			h.current.Stop()
			time.Sleep(period)
			if got, want := h.drain(), fmt.Sprintf("set a at %[1]d, watch from %[1]d", version); got != want {
				t.Fatalf("got: %s, want: %s", got, want)
			}
		}
		if took := time.Since(begun); len(h.attempts) > 0 || took > 20*period {
			t.Errorf("20 watches took %v; failed attempts: %v", took, h.attempts)
		}
	})
}

func TestAReflectorEndsWhenItsHandlerSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &history{refusal: apierrors.NewInternalError(syscall.EIO)}
		NewReflector(h, h, metav1.ListOptions{}).Run(t.Context())
		check.EqualNamed(t, "failed attempts", []int{0, 1, 2, 3, 4, 5}, h.attempts)
	})
}
