// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var start = time.Unix(1_000_000, 0)

// fleetOf makes a fleet of words such as "b=Waiting", or "a=Done!" for a canary.
func fleetOf(words string) members {
	f := members{}
	for word := range strings.FieldsSeq(words) {
		name, state, _ := strings.Cut(word, "=")
		state, canary := strings.CutSuffix(state, "!")
		f[keyOf(name)] = Member{State: State(state), Canary: canary}
	}
	return f
}

func keyOf(name string) types.NamespacedName {
	namespace, name, _ := strings.Cut(name, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func namesOf(keys []types.NamespacedName) string {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.String()
	}
	return strings.Join(names, " ")
}

func TestWhoMayStart(t *testing.T) {
	two := Limits{MaxUnavailable: intstr.FromInt32(2)}
	for name, test := range map[string]struct {
		fleet  string
		limits Limits
		start  string
		stops  bool
	}{
		"nothing waits":                           {"a/a=Done a/b=Pinned a/c=Failed a/d=Failed", two, "", false},
		"the first by namespace and name":         {"b/a=Waiting a/z=Waiting a/b=Waiting", two, "a/b a/z", false},
		"one is updated":                          {"a/a=Updating a/b=Waiting a/c=Waiting", two, "a/b", false},
		"all slots are in use":                    {"a/a=Updating a/b=Updating a/c=Waiting", two, "", false},
		"more than all, by edits":                 {"a/a=Updating a/b=Updating a/c=Updating a/d=Waiting", two, "", false},
		"one failed":                              {"a/a=Failed a/b=Waiting a/c=Waiting", two, "a/b", false},
		"one failed and one is updated":           {"a/a=Failed a/b=Updating a/c=Waiting", two, "", false},
		"the failed ones fill all slots":          {"a/a=Failed a/b=Failed a/c=Waiting", two, "", true},
		"also while one is edited":                {"a/a=Failed a/b=Failed a/c=Updating a/d=Waiting", two, "", true},
		"one that cannot start is passed over":    {"a/a=Unable a/b=Waiting a/c=Waiting a/d=Waiting", two, "a/b a/c", false},
		"pinned ones do not start":                {"a/a=Pinned a/b=Waiting", two, "a/b", false},
		"canaries first":                          {"a/a=Waiting a/b=Waiting! a/c=Waiting", two, "a/b", false},
		"others wait for a canary":                {"a/a=Waiting a/b=Updating! a/c=Waiting", two, "", false},
		"others wait for a canary that fails":     {"a/a=Waiting a/b=Failed! a/c=Waiting", two, "", true},
		"unless another canary can go on":         {"a/a=Waiting a/b=Failed! a/c=Waiting!", two, "a/c", false},
		"or is under way":                         {"a/a=Waiting a/b=Failed! a/c=Updating!", two, "", false},
		"others wait for a canary that is unable": {"a/a=Waiting a/b=Unable! a/c=Waiting", two, "", false},
		"canaries that are done or pinned":        {"a/a=Waiting a/b=Done! a/c=Pinned!", two, "a/a", false},
		"a percentage":                            {"a/a=Waiting a/b=Waiting a/c=Waiting a/d=Waiting a/e=Done", Limits{MaxUnavailable: intstr.FromString("40%")}, "a/a a/b", false},
		"is rounded down":                         {"a/a=Waiting a/b=Waiting a/c=Waiting a/d=Waiting a/e=Done", Limits{MaxUnavailable: intstr.FromString("59%")}, "a/a a/b", false},
		"to at least 1":                           {"a/a=Waiting a/b=Waiting", Limits{MaxUnavailable: intstr.FromString("1%")}, "a/a", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := fleetOf(test.fleet).decide(test.limits, start)
			if got := namesOf(d.Start); got != test.start || d.Stopped != test.stops {
				t.Errorf("%s: start %q, stopped %t; want %q, %t", test.fleet, got, d.Stopped, test.start, test.stops)
			}
		})
	}
}

func TestThePauseBeginsWhenAComponentBecomesReady(t *testing.T) {
	limits := Limits{MaxUnavailable: intstr.FromInt32(1), Pause: time.Minute}
	for name, test := range map[string]struct {
		readyAt time.Duration
		after   time.Duration
		start   string
	}{
		"just now":        {0, time.Minute, ""},
		"a while ago":     {-45 * time.Second, 15 * time.Second, ""},
		"long enough ago": {-time.Minute, 0, "a/b"},
		"in the future":   {time.Hour, 0, "a/b"},
	} {
		f := fleetOf("a/a=Done a/b=Waiting a/c=Waiting")
		f[keyOf("a/a")] = Member{State: Done, ReadyAt: start.Add(test.readyAt)}
		if d := f.decide(limits, start); namesOf(d.Start) != test.start || d.After != test.after {
			t.Errorf("%s: start %q after %s; want %q after %s", name, namesOf(d.Start), d.After, test.start, test.after)
		}
	}
	if d := fleetOf("a/a=Done a/b=Waiting").decide(limits, start); namesOf(d.Start) != "a/b" {
		t.Errorf("the first start waits: %+v", d)
	}
}

func TestAllMistakesOfLimitsAreReported(t *testing.T) {
	for _, text := range []string{"0%", "101%", "half", "", "5", "05%"} {
		if (Limits{MaxUnavailable: intstr.FromString(text)}).Validate() == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	for _, good := range []Limits{{MaxUnavailable: intstr.FromInt32(1)}, {MaxUnavailable: intstr.FromString("100%"), Pause: time.Hour}, {MaxUnavailable: intstr.FromString("7%")}} {
		if err := good.Validate(); err != nil {
			t.Error(err)
		}
	}
	want := "option Rollout.MaxUnavailable 0: must be a number of at least 1, or a percentage from 1% to 100%\noption Rollout.Pause -1s: must not be negative"
	if got := (Limits{Pause: -time.Second}).Validate(); got == nil || got.Error() != want {
		t.Errorf("got %v", got)
	}
}

// anyFleet makes a fleet in any state.
func anyFleet(random *rand.Rand) (fleet members, limits Limits) {
	limits.MaxUnavailable = intstr.FromInt32(1 + random.Int32N(4))
	if random.IntN(2) == 0 {
		limits.MaxUnavailable = intstr.FromString(fmt.Sprintf("%d%%", 1+random.IntN(50)))
	}
	if random.IntN(2) == 0 {
		limits.Pause = time.Duration(1+random.IntN(10)) * time.Second
	}
	fleet = members{}
	for i := range 1 + random.IntN(15) {
		states := []State{Waiting, Waiting, Updating, Done, Failed, Pinned, Unable}
		m := Member{State: states[random.IntN(len(states))], Canary: random.IntN(5) == 0}
		if m.State == Done && random.IntN(2) == 0 {
			m.ReadyAt = start.Add(-time.Duration(random.IntN(15)) * time.Second)
		}
		fleet[types.NamespacedName{Namespace: fmt.Sprint("ns", i%3), Name: fmt.Sprint("c", i)}] = m
	}
	return fleet, limits
}

// startNext starts those that may, one after the other, and checks each.
func (m members) startNext(d decision, limits Limits, now time.Time) error {
	for _, key := range d.Start {
		c, unavailable := m[key], 1
		if c.State != Waiting {
			return fmt.Errorf("%s starts in state %s", key, c.State)
		}
		for other, o := range m {
			switch {
			case o.Canary && !c.Canary && o.State != Done && o.State != Pinned:
				return fmt.Errorf("%s starts before canary %s, which is %s", key, other, o.State)
			case o.Canary == c.Canary && o.State == Waiting && compare(other, key) < 0:
				return fmt.Errorf("%s starts before %s", key, other)
			case limits.Pause > 0 && o.State == Done && !o.ReadyAt.IsZero() && now.Sub(o.ReadyAt) < limits.Pause:
				return fmt.Errorf("%s starts %s after %s became ready", key, now.Sub(o.ReadyAt), other)
			case o.State == Updating || o.State == Failed:
				unavailable++
			}
		}
		if most := limits.Max(len(m)); unavailable > most {
			return fmt.Errorf("%d components are unavailable, at most %d may be", unavailable, most)
		}
		m[key] = Member{State: Updating, Canary: c.Canary}
	}
	return nil
}

// A decision follows from the fleet, the limits and the time: no start exceeds the maximum, canaries come first, the order and the pause
// are kept, a roll-out that stops says so, and one that need not stop gets to its end.
func TestARolloutKeepsItsRulesWhateverHappens(t *testing.T) {
	for seed := range uint64(20_000) {
		random, now := rand.New(rand.NewPCG(seed, 7)), start
		f, limits := anyFleet(random)
		fail := func(what any) {
			t.Helper()
			t.Fatalf("seed %d: %v\nlimits %+v\n%+v", seed, what, limits, f)
		}
		for round := 0; ; round++ {
			d := f.decide(limits, now)
			if err := f.startNext(d, limits, now); err != nil || round > 1000 {
				fail(fmt.Sprintf("round %d: %v", round, err))
			}
			moved := len(d.Start) > 0
			now = now.Add(max(d.After, 1))
			for key, c := range f { // nothing goes wrong; what failed is not repaired by itself
				switch c.State {
				case Unable:
					f[key], moved = Member{State: Waiting, Canary: c.Canary}, true
				case Updating:
					f[key], moved = Member{State: Done, Canary: c.Canary, ReadyAt: now}, true
				}
			}
			if moved || d.After > 0 {
				continue
			}
			if d.Stopped != (d.Waits > 0) {
				fail(fmt.Sprintf("%d components wait, stopped: %t", d.Waits, d.Stopped))
			}
			if !d.Stopped {
				break
			}
			repaired := d.Failed[random.IntN(len(d.Failed))] // by a user
			f[repaired] = Member{State: Done, Canary: f[repaired].Canary, ReadyAt: now}
		}
		for key, c := range f {
			if c.State == Waiting || c.State == Unable {
				fail(fmt.Sprintf("%s is %s at the end", key, c.State))
			}
		}
	}
}

func TestADecisionNamesThoseThatFailed(t *testing.T) {
	d := fleetOf("b/a=Failed a/c=Failed a/b=Waiting a/a=Unable").decide(Limits{MaxUnavailable: intstr.FromInt32(2)}, start)
	want := decision{Stopped: true, Waits: 2, Failed: []types.NamespacedName{keyOf("a/c"), keyOf("b/a")}, Max: 2}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
