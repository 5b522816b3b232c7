// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/test/check"
)

func TestServersThatCannotStreamListsAreAskedForLists(t *testing.T) {
	for name, behave := range map[string]func(*server){
		"it says so": func(s *server) {
			s.refuse = func(what, _ string) error {
				if what == "watch" {
					return apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
				}
				return nil
			}
		},
		"it does not know": func(s *server) { s.deaf = true },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(b *bed) {
				b.server.set(behave)
				b.server.put(object("shop", "pod", "1", "a", "one"))
				b.store.Keep("a", []Place{inShop})
				advance(2 * time.Minute)
				b.sees(inShop, "pod", "one")
				b.asked(name, "watch", "list", "rewatch")
				edit(func(o *unstructured.Unstructured) { o.Object["spec"] = "two" })(b.server)
				b.sees(inShop, "pod", "two")
				b.expect("a change", "a: pod Content")
			})
		})
	}
}

func TestAListWithoutAWatchIsNotBelievedForLong(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.set(func(s *server) {
			s.refuse = func(what, _ string) error {
				switch what {
				case "watch":
					return apierrors.NewBadRequest("sendInitialEvents")
				case "rewatch":
					return apierrors.NewTimeoutError("later", 1)
				}
				return nil
			}
		})
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.keep("a", inShop)
		b.sees(inShop, "pod", "one")
		b.server.set(func(s *server) {
			s.refuse = func(string, string) error { return apierrors.NewTimeoutError("later", 1) }
		})
		advance(time.Minute)
		b.misses(inShop, "pod", false)
	})
}

func TestAStorageThatWasRestoredIsRecognized(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.server.put(object("shop", "late", "2", "a", "one"))
		b.keep("a", inShop)
		edit(func(o *unstructured.Unstructured) { o.Object["spec"] = "two" })(b.server)
		b.expect("a change", "a: pod Content")
		b.server.set(func(s *server) {
			s.restore()
			s.refuse = func(what, _ string) error {
				if what == "rewatch" {
					return apierrors.NewTimeoutError("Too large resource version", 1)
				}
				return nil
			}
		})
		b.server.cut()
		advance(time.Minute)
		b.sees(inShop, "pod", "one")
		b.misses(inShop, "late", true)
		b.expect("as it was", "a: late Vanished", "a: pod Content")
		edit(func(o *unstructured.Unstructured) { o.Object["spec"] = "three" })(b.server)
		b.sees(inShop, "pod", "three")
	})
}

func withVersion(live *unstructured.Unstructured, version string) *unstructured.Unstructured {
	live.SetResourceVersion(version)
	return live
}

func TestWaitReturnsWhereItIsOfNoUse(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.store.Wait(b.Context(), []Place{inShop}) // no owner keeps it
		b.server.set(func(s *server) { s.refuse = func(string, string) error { return errors.New("the line is dead") } })
		b.keep("a", inShop)
		b.misses(inShop, "pod", false)

		b.server.set(func(s *server) { s.refuse, s.deaf = nil, true })
		b.store.Keep("a", nil)
		advance(2 * time.Minute)
		started := time.Now()
		ctx, cancel := context.WithTimeout(b.Context(), 3*time.Second)
		defer cancel()
		b.store.Keep("a", []Place{inShop})
		b.store.Wait(ctx, []Place{inShop})
		check.SameNamed(t, "waited", 3*time.Second, time.Since(started))
		go b.store.Wait(b.Context(), []Place{inShop})
		synctest.Wait()
		b.store.Close() // ends the wait
	})
}

// Each object would be read otherwise.
func TestAWatchThatIsCutShortOnceIsAwaited(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.server.set(func(s *server) {
			s.deaf = true
			s.after = func(stream *fakeStream) {
				s.deaf, s.after = false, nil
				time.AfterFunc(10*time.Millisecond, stream.Close)
			}
		})
		b.keep("a", inShop)
		b.sees(inShop, "pod", "one")
	})
}

func TestWatchesThatAreCutShortAgainAndAgainAreNotAwaited(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.server.set(func(s *server) {
			s.deaf = true
			s.after = func(stream *fakeStream) { time.AfterFunc(29*time.Second, stream.Close) }
		})
		b.store.Keep("a", []Place{inShop})
		advance(5 * time.Minute)
		start := time.Now()
		ctx, cancel := context.WithTimeout(b.Context(), 3*time.Second)
		defer cancel()
		b.store.Wait(ctx, []Place{inShop})
		if waited := time.Since(start); waited > 0 {
			t.Errorf("waited %s", waited)
		}
	})
}

func TestNothingIsKeptAfterClose(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.keep("a", inShop)
		done := b.store.Writing("a", inShop, "pod")
		b.store.Close()
		b.store.Close()
		done(answer(b.server.put(object("shop", "pod", "1", "a", "two"))))
		b.store.Read("a", inShop, "pod", reduced(b.server.put(object("shop", "pod", "1", "a", "three"))))
		b.store.Writing("a", inShop, "pod")(nil)
		b.keep("a", inShop)
		b.misses(inShop, "pod", false)
		b.expect("no owner is notified")
	})
}

// atOnce is more requests than a client sends that makes pauses.
const atOnce = 100

func TestAServerThatNeverStartsAWatchIsRetriedWithBackoff(t *testing.T) {
	for name, behave := range map[string]func(*server){
		"the version is always too old": func(s *server) {
			s.refuse = func(string, string) error { return apierrors.NewResourceExpired("too old") }
		},
		"it has no time": func(s *server) {
			s.refuse = func(string, string) error { return apierrors.NewTooManyRequests("later", 1) }
		},
		"it ends the watch after some objects": func(s *server) {
			s.deaf = true
			s.after = func(stream *fakeStream) { time.AfterFunc(10*time.Millisecond, stream.Close) }
		},
		"it ends the watch with an error": func(s *server) {
			s.deaf = true
			s.after = func(stream *fakeStream) { stream.events <- fakeEvent{code: http.StatusTooManyRequests} }
		},
		"it ends the watch because of the version": func(s *server) {
			s.deaf = true
			s.after = func(stream *fakeStream) { stream.events <- fakeEvent{code: http.StatusGone} }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(b *bed) {
				b.server.put(object("shop", "pod", "1", "a", "one"))
				b.server.set(behave)
				b.store.Keep("a", []Place{inShop})
				advance(10 * time.Minute)
				b.misses(inShop, "pod", false)
				if n := len(b.server.asked()); n < 10 || n > 2*atOnce {
					t.Errorf("%d requests in 10 minutes", n)
				}
				closing := time.Now()
				b.store.Close()
				if took := time.Since(closing); took > 0 {
					t.Errorf("Close took %s", took)
				}
			})
		})
	}
}

func TestAServerThatStartsAndDoesNotKnowRightsYetIsWatchedSoon(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.keep("a", inShop)
		advance(2 * time.Second)
		b.server.set(func(s *server) { s.refuse = forbid("", "shop") })
		b.server.cut()
		advance(5 * time.Second)
		b.misses(inShop, "pod", false)
		b.server.set(func(s *server) { s.refuse = nil })
		advance(5 * time.Second)
		b.sees(inShop, "pod", "one")
		b.expect("nothing changed")
		if stats := sizesOf(b.store); stats.reflectors != 1 || stats.refused != 0 {
			t.Errorf("%+v", stats)
		}
	})
}

func TestInitialObjectsNotifyNoOwnerThoughTheClusterWasWatchedBefore(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.keep("a", inShop)
		advance(2 * time.Second)
		b.server.set(func(s *server) { s.refuse = forbid("") })
		b.server.cut()
		advance(time.Second)
		b.server.put(object("bank", "pod", "2", "b", "one"))
		b.keep("b", inBank)
		b.sees(inBank, "pod", "one")
		b.expect("it was there before")
	})
}

// restore puts back what a storage held at version 50.
func (s *server) restore() {
	s.version, s.history = 50, nil
	s.objects[objectName{"shop", "pod"}] = withVersion(object("shop", "pod", "1", "a", "one"), "40")
	delete(s.objects, objectName{"shop", "late"})
}

func TestAStorageThatWasRestoredWithoutAWatchIsRecognized(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.server.put(object("shop", "late", "2", "a", "one"))
		b.keep("a", inShop)
		b.server.set(func(s *server) { s.refuse = forbid("", "shop") })
		b.server.cut()
		advance(time.Minute)
		b.misses(inShop, "pod", false)
		b.store.Read("a", inShop, "pod", reduced(b.server.change("shop", "pod", content("two"))))
		b.server.remove("shop", "late")
		b.store.Read("a", inShop, "late", *gone("2"))

		b.server.set(func(s *server) {
			s.restore()
			s.objects[objectName{"shop", "late"}] = withVersion(object("shop", "late", "2", "a", "back"), "41")
			s.refuse = nil
		})
		advance(time.Hour)
		b.sees(inShop, "pod", "one")
		b.sees(inShop, "late", "back")
		b.expect("as it was", "a: late Content", "a: pod Content")
		b.store.Read("a", inShop, "pod", reduced(b.server.change("shop", "pod", content("three"))))
		b.sees(inShop, "pod", "three")
	})
}

// What we were answered after a list was asked for is newer than the list, on the same storage.
func TestAnAnswerThatOvertakesTheListDoesNotMakeItARestoredOne(t *testing.T) {
	inBubble(t, Options{}, func(b *bed) {
		b.server.put(object("shop", "pod", "1", "a", "one"))
		b.server.set(func(s *server) {
			s.after = func(*fakeStream) {
				b.store.Read("a", inShop, "pod", reduced(withVersion(object("shop", "pod", "1", "a", "two"), "150")))
			}
		})
		b.keep("a", inShop)
		b.sees(inShop, "pod", "two")
	})
}
