// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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

// story is a fleet to which anything may happen.
type story struct {
	*testing.T
	random *rand.Rand
	fleet  members
	limits Limits
	now    time.Time
	told   []string
}

func newStory(t *testing.T, seed uint64) *story {
	random := rand.New(rand.NewPCG(seed, 7))
	s := &story{T: t, random: random, fleet: members{}, now: start}
	s.limits.MaxUnavailable = intstr.FromInt32(1 + random.Int32N(4))
	if random.IntN(2) == 0 {
		s.limits.MaxUnavailable = intstr.FromString(fmt.Sprintf("%d%%", 1+random.IntN(50)))
	}
	if random.IntN(2) == 0 {
		s.limits.Pause = time.Duration(1+random.IntN(10)) * time.Second
	}
	for i := range 1 + random.IntN(15) {
		s.fleet[s.key(i)] = Member{State: Waiting, Canary: random.IntN(5) == 0}
	}
	return s
}

func (s *story) key(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: fmt.Sprint("ns", i%3), Name: fmt.Sprint("c", i)}
}

func (s *story) tell(format string, arguments ...any) {
	s.told = append(s.told, fmt.Sprintf(format, arguments...))
}

func (s *story) fail(format string, arguments ...any) {
	s.Helper()
	s.Fatalf("%s\nlimits %+v\n%s", fmt.Sprintf(format, arguments...), s.limits, strings.Join(s.told, "\n"))
}

// unavailable counts the components that use a slot.
func (s *story) unavailable() (count int) {
	for _, c := range s.fleet {
		if c.State == Updating || c.State == Failed {
			count++
		}
	}
	return count
}

func (s *story) set(key types.NamespacedName, state State) {
	c := s.fleet[key]
	c.State, c.ReadyAt = state, time.Time{}
	if state == Done {
		c.ReadyAt = s.now
	}
	s.tell("%s: %s is %s", s.now.Sub(start), key, state)
	s.fleet[key] = c
}

// startNext starts those that may, one after the other, and checks each.
func (s *story) startNext() (started bool) {
	for _, key := range s.fleet.decide(s.limits, s.now).Start {
		c := s.fleet[key]
		if c.State != Waiting {
			s.fail("%s starts in state %s", key, c.State)
		}
		for other, o := range s.fleet {
			switch {
			case o.Canary && !c.Canary && o.State != Done && o.State != Pinned:
				s.fail("%s starts before canary %s, which is %s", key, other, o.State)
			case o.Canary == c.Canary && o.State == Waiting && compare(other, key) < 0:
				s.fail("%s starts before %s", key, other)
			case s.limits.Pause > 0 && o.State == Done && !o.ReadyAt.IsZero() && s.now.Sub(o.ReadyAt) < s.limits.Pause:
				s.fail("%s starts %s after %s became ready", key, s.now.Sub(o.ReadyAt), other)
			}
		}
		s.set(key, Updating)
		started = true
		if got, most := s.unavailable(), s.limits.Max(len(s.fleet)); got > most {
			s.fail("%d components are unavailable, at most %d may be", got, most)
		}
	}
	return started
}

// happen lets something happen to any component.
func (s *story) happen() {
	keys := slices.SortedFunc(maps.Keys(s.fleet), compare)
	s.now = s.now.Add(time.Duration(s.random.IntN(4)) * time.Second)
	if len(keys) == 0 || s.random.IntN(20) == 0 {
		key := s.key(s.random.IntN(20))
		if _, exists := s.fleet[key]; !exists {
			s.fleet[key] = Member{State: Done, Canary: s.random.IntN(5) == 0}
			s.tell("%s is created", key)
		}
		return
	}
	key := keys[s.random.IntN(len(keys))]
	switch c := s.fleet[key]; s.random.IntN(12) {
	case 0:
		delete(s.fleet, key)
		s.tell("%s is deleted", key)
	case 1: // edited or promoted, whatever the limit
		s.set(key, Updating)
	case 2:
		if c.State == Waiting || c.State == Unable {
			s.set(key, Pinned)
		}
	case 3:
		if c.State == Waiting {
			s.set(key, Unable)
		}
	case 4, 5:
		if c.State == Pinned || c.State == Unable {
			s.set(key, Waiting)
		}
	case 6:
		if c.State == Updating {
			s.set(key, Failed)
		}
	case 7: // repaired, or ignored
		if c.State == Failed {
			s.set(key, Done)
		}
	default:
		if c.State == Updating {
			s.set(key, Done)
		}
	}
}

// Whatever happens: no start exceeds the maximum, canaries come first, the order and the pause are kept,
// a roll-out that stops says so, and one that need not stop gets to its end.
func TestARolloutKeepsItsRulesWhateverHappens(t *testing.T) {
	for seed := range uint64(1000) {
		s := newStory(t, seed)
		for range 60 {
			s.happen()
			s.startNext()
		}
		// From now on, nothing goes wrong. What failed, is not repaired by itself.
		for round := 0; ; round++ {
			if round > 1000 {
				s.fail("no end")
			}
			d := s.fleet.decide(s.limits, s.now)
			moved := s.startNext()
			s.now = s.now.Add(max(d.After, 1))
			for _, key := range slices.SortedFunc(maps.Keys(s.fleet), compare) {
				switch s.fleet[key].State {
				case Unable:
					s.set(key, Waiting)
					moved = true
				case Updating:
					s.set(key, Done)
					moved = true
				}
			}
			if moved || d.After > 0 {
				continue
			}
			if d.Stopped != (d.Waits > 0) {
				s.fail("%d components wait, stopped: %t", d.Waits, d.Stopped)
			}
			if !d.Stopped {
				break
			}
			// A user looks after one that failed.
			s.set(d.Failed[s.random.IntN(len(d.Failed))], Done)
		}
		for key, c := range s.fleet {
			if c.State == Waiting || c.State == Unable {
				s.fail("%s is %s at the end", key, c.State)
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
