// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/test/slice"
)

// schedules is how many random schedules there are.
const schedules = 300

// The world in memory is worth something only if it is like the real one: the
// same random schedules end the same way on both. In every other one the engine
// watches, and comes by until it has seen what happened.
func TestTheWorldInMemoryIsLikeARealCluster(t *testing.T) {
	cases, ran, events := slice.FromEnvironment(t), 0, 0
	for seed := range schedules {
		if cases.Has(seed) {
			ran++
			t.Run(fmt.Sprint(seed), func(t *testing.T) { events += playBoth(t, uint64(seed)) })
		}
	}
	t.Logf("%d of %d schedules, %d events", ran, schedules, events)
}

// eventually waits until something is so, and goes on in any case.
func eventually(t *testing.T, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !so() && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
}

// playBoth plays one random schedule, and returns the number of its events.
func playBoth(t *testing.T, seed uint64) int {
	rng := rand.New(rand.NewPCG(seed, 2))
	config := randomConfig(rng)
	config.Watched = seed%2 == 1
	memory := newMemory(config)
	real := newReal(t, config)
	version, deleting, events := 0, false, 3+rng.IntN(8)
	var diary []string
	compare := func(what string, want, got []string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("after\n  %s\n%s differs (-in memory +real):\n%s", strings.Join(diary, "\n  "), what, diff)
		}
	}
	play := func() {
		diary = append(diary, fmt.Sprintf("pass, version %d, deleting %t", version, deleting))
		want := memory.reconcile(version, deleting)
		if config.Watched {
			// Its events are on their way, and several reconciles may be needed.
			eventually(t, func() bool {
				real.reconcile(version, deleting)
				return slices.Equal(memory.look(), real.look())
			})
			return
		}
		compare("what was done", want, real.reconcile(version, deleting))
		compare("what was read before the first write", memory.read, real.read())
		if !deleting {
			compare("the outputs, fresh and published,", real.fresh(version), real.published())
		}
	}
	for range events {
		if acts := memory.possible(); len(acts) > 0 && rng.IntN(3) > 0 {
			act := acts[rng.IntN(len(acts))]
			diary = append(diary, fmt.Sprintf("another client %s %s", act.Kind, act.Key))
			memory.act(act)
			real.act(act)
		} else {
			version, deleting = rng.IntN(len(config.Components[0])), deleting || rng.IntN(8) == 0
			play()
		}
		compare("the world", memory.look(), real.look())
	}
	for range 2 {
		play()
		compare("the world", memory.look(), real.look())
	}
	if before := memory.look(); config.Watched {
		memory.reconcile(version, deleting)
		eventually(t, func() bool {
			real.reconcile(version, deleting)
			return slices.Equal(memory.read, real.read())
		})
		compare("the world at rest", before, real.look())
		compare("what is read at rest", memory.read, real.read())
		if !deleting {
			compare("the outputs at rest, fresh and published,", real.fresh(version), real.published())
		}
	}
	return events
}

// randomConfig is a component of up to three objects in two versions.
func randomConfig(rng *rand.Rand) Config {
	config := Config{Components: [][][]Want{{nil, nil}}, Disturbances: 100}
	secret := plan.Key{Kind: "Secret", Namespace: "shop", Name: "s"}
	for _, key := range []plan.Key{configA, configB, secret} {
		set := randomPolicies(rng)
		for version := range 2 {
			if version == 0 && key == configA || rng.IntN(4) > 0 {
				config.Components[0][version] = append(config.Components[0][version], want(key, fmt.Sprint(rng.IntN(3)), func(s *policy.Set) { *s = set }))
			}
		}
		config.Acts = append(config.Acts, on(key, append(slices.Clone(everything), ActAdd)...)...)
		if set.Adoption != v1alpha1.AdoptionPolicyAlways {
			config.Acts = append(config.Acts, on(key, ActHelm)...)
		}
	}
	if len(config.Components[0][1]) == 0 {
		config.Components[0][1] = config.Components[0][0][:1]
	}
	return config
}

func randomPolicies(rng *rand.Rand) policy.Set {
	set := desiredOf(want(configA, ""), ownerOf(0, 1)).Policies
	set.Adoption = pick(rng, v1alpha1.AdoptionPolicyIfUnowned, v1alpha1.AdoptionPolicyNever, v1alpha1.AdoptionPolicyAlways)
	set.Update = pick(rng, v1alpha1.UpdatePolicyReplace, v1alpha1.UpdatePolicySsaMerge, v1alpha1.UpdatePolicyRecreate)
	set.Delete = pick(rng, v1alpha1.DeletePolicyDelete, v1alpha1.DeletePolicyDelete, v1alpha1.DeletePolicyOrphan, v1alpha1.DeletePolicyOrphanOnApply, v1alpha1.DeletePolicyOrphanOnDelete)
	set.Order.Apply, set.Order.Delete = pick[int16](rng, 0, 0, 1), pick[int16](rng, 0, 0, 1)
	switch rng.IntN(8) {
	case 0:
		set.Reconcile = once
	case 1:
		set.Order.Purge = new(pick[int16](rng, 1, 2))
	}
	return set
}

func pick[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

// memory is the cluster in memory.
type memory struct {
	m *Model
	s *State
	// read are the objects that the last reconcile has read before it wrote anything.
	read []string
}

func newMemory(config Config) *memory {
	m := New(config)
	return &memory{m: m, s: m.Start()}
}

func (w *memory) possible() []Act {
	var acts []Act
	for _, act := range w.m.Acts {
		if w.m.enabled(w.s, act) {
			acts = append(acts, act)
		}
	}
	return acts
}

func (w *memory) act(act Act) {
	next := w.s.clone()
	w.m.act(next, act)
	w.s = next
}

func (w *memory) reconcile(version int, deleting bool) []string {
	w.read = nil
	if c := w.s.world.components[0]; c == nil {
		return []string{"done"}
	} else if c.Version != version || c.Deleting != deleting {
		next, changed := w.s.clone(), *c
		changed.Version, changed.Deleting = version, deleting
		next.world.putComponent(0, changed)
		w.s = next
	}
	_, way := w.m.round(w.s, nil)
	var did []string
	var waits []plan.Wait
	sent := false
	for _, s := range way {
		sent = sent || s.sent
		if s.read.Namespace != "" && !sent {
			w.read = append(w.read, s.read.Kind+" "+s.read.Name)
		}
		for _, step := range s.carried {
			did = append(did, string(step.Verb))
		}
		if s.actors[0].at != idle {
			waits = s.waiting
		}
	}
	w.s = way[len(way)-1]
	if v := w.s.Violation(); v != "" {
		return []string{v}
	}
	return described(did, waits)
}

// described describes a reconcile.
func described(did []string, waits []plan.Wait) []string {
	slices.Sort(did)
	for _, wait := range waits {
		did = append(did, fmt.Sprintf("waits for %s %s: %s", wait.Key.Kind, wait.Key.Name, wait.Reason))
	}
	if len(waits) == 0 {
		did = append(did, "done")
	}
	return did
}

func (w *memory) look() []string {
	var lines []string
	for _, o := range w.s.world.objects {
		if o.Key == componentNamespace {
			continue
		}
		owner := map[string]string{"": "none", "id-a": "us", otherOwner.ID: "another owner"}[o.OwnerID]
		lines = append(lines, line(o.Key, o.Value, owner, o.Extra, o.Helm, o.Deleting, o.Held))
	}
	if c := w.s.world.components[0]; c != nil {
		lines = append(lines, records(c.Inventory, func(key plan.Key) string {
			if o := w.s.world.get(key); o != nil {
				return string(uidOf(o.UID))
			}
			return ""
		})...)
	}
	return lines
}

func line(key plan.Key, value, owner string, extra, helm, deleting, held bool) string {
	return fmt.Sprintf("%s %s: %s, owned by %s, extra %t, helm %t, deleting %t, held %t", key.Kind, key.Name, value, owner, extra, helm, deleting, held)
}

// records describes a record.
func records(items []v1alpha1.InventoryItem, live func(plan.Key) string) []string {
	var lines []string
	for _, item := range items {
		same := item.UID != "" && string(item.UID) == live(plan.KeyOf(item))
		lines = append(lines, fmt.Sprintf("recorded: %s %s, phase %q, applied %t, is there %t", item.Kind, item.Name, item.Phase, item.Digest != "", same))
	}
	return lines
}
