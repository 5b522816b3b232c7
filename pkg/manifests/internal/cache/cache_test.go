// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/corbel-run/corbel/pkg/manifests/internal/cache"
	"github.com/corbel-run/corbel/test/check"
)

func key(name string) cache.Key { return cache.KeyOf(map[string]string{"": name}) }

// there returns which of the keys are kept, and uses none of them.
func there(c *cache.Cache[string], keys ...string) string {
	text := ""
	for _, k := range keys {
		if value, ok := c.Get(key(k)); ok {
			text += value
		}
	}
	return text
}

func TestWhatWasNotUsedForTheLongestTimeGoes(t *testing.T) {
	c := cache.New[string](3, 100)
	for _, k := range []string{"a", "b", "c"} {
		c.Put(key(k), k, 10)
	}
	check.Same(t, "a", there(c, "a"))
	c.Put(key("d"), "d", 10)
	if got := there(c, "a", "b", "c", "d"); got != "acd" {
		t.Errorf("too many: %q are kept", got)
	}
	c.Put(key("e"), "e", 85)
	if got := there(c, "a", "c", "d", "e"); got != "de" {
		t.Errorf("too large together: %q are kept", got)
	}
	c.Put(key("f"), "f", 101)
	if got := there(c, "d", "e", "f"); got != "de" {
		t.Errorf("too large: %q are kept", got)
	}
	c.Put(key("e"), "E", 5)
	c.Put(key("g"), "g", 80)
	if got := there(c, "d", "e", "g"); got != "dEg" {
		t.Errorf("replaced: %q are kept", got)
	}
}

func TestKeysAreThoseOfNamesAndContents(t *testing.T) {
	all := map[cache.Key]string{}
	for _, contents := range []map[string]string{nil, {"": ""}, {"a": ""}, {"": "a"}, {"a": "b"}, {"ab": ""}, {"a": "", "b": ""}, {"b": "a"}, {"a": "b", "": ""}} {
		if earlier, twice := all[cache.KeyOf(contents)]; twice {
			t.Errorf("%v and %s have one key", contents, earlier)
		}
		all[cache.KeyOf(contents)] = fmt.Sprint(contents)
	}
	if cache.KeyOf(map[string]string{"a": "1", "b": "2"}) != cache.KeyOf(map[string][]byte{"b": []byte("2"), "a": []byte("1")}) {
		t.Error("the same contents have two keys")
	}
}

// For the race detector.
func TestACacheIsUsedByMany(t *testing.T) {
	c := cache.New[int](8, 1000)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 200 {
				k := key(fmt.Sprint(n % 16))
				if value, ok := c.Get(k); ok && value != n%16 {
					t.Errorf("got %d for %d", value, n%16)
				}
				c.Put(k, n%16, int64(i))
			}
		})
	}
	group.Wait()
}
