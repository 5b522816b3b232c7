// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// simulation is a random world with a random component, and a diary.
type simulation struct {
	t      *testing.T
	seed   uint64
	rng    *rand.Rand
	world  *world
	driver *driver
	oracle *oracle
	// candidates are the objects that may be desired, with the policies that
	// do not change from one version of the component to the next.
	candidates map[Key]policy.Set
	diary      []func() string // written only if the simulation fails
	misled     int             // reconciles that received an old state from the watch
}

// eachSeed runs a property over many seeds. CORBEL_PROPERTY_RUNS multiplies
// their number, CORBEL_PROPERTY_SEED runs a single one.
func eachSeed(t *testing.T, seeds int, property func(s *simulation)) {
	t.Helper()
	if text := os.Getenv("CORBEL_PROPERTY_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		property(newSimulation(t, seed))
		return
	}
	if text := os.Getenv("CORBEL_PROPERTY_RUNS"); text != "" {
		runs, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		seeds *= runs
	}
	for seed := range seeds {
		property(newSimulation(t, uint64(seed)))
	}
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	w := newWorld()
	w.put(object{key: namespaceKey("shop")})
	s := &simulation{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), world: w,
		driver: newDriver(w), candidates: map[Key]policy.Set{},
	}
	s.driver.watches = s.chance(50)
	s.oracle = newOracle(s.driver)
	s.driver.observer = func(p Plan, results []Result) { s.note("%s(%d of %d steps done)", p, len(results), len(p.Steps)) }
	s.driver.before = func(step Step) { s.oracle.before(step) }
	s.cast()
	return s
}

// note writes into the diary.
func (s *simulation) note(format string, args ...any) {
	s.diary = append(s.diary, func() string { return fmt.Sprintf(format, args...) })
}

// fail ends the test with the diary, so that the seed can be understood.
func (s *simulation) fail(format string, args ...any) {
	s.t.Helper()
	for _, entry := range s.diary {
		s.t.Log(entry())
	}
	s.t.Fatalf("seed %d: %s", s.seed, fmt.Sprintf(format, args...))
}

// verify fails if something happened that never should.
func (s *simulation) verify() {
	s.t.Helper()
	if len(s.world.violations) > 0 {
		s.fail("%s", s.world.violations[0])
	}
}

func (s *simulation) chance(percent int) bool { return s.rng.IntN(100) < percent }

func pick[T any](s *simulation, values ...T) T { return values[s.rng.IntN(len(values))] }

// stock are the objects that components are made of.
var stock = [][2]string{
	{"Namespace", "extra"}, {"CustomResourceDefinition", "foos.example.com"}, {"ServiceAccount", "shop/api"},
	{"ClusterRole", "api"}, {"ConfigMap", "shop/a"}, {"ConfigMap", "shop/b"}, {"ConfigMap", "tenants/a"},
	{"ConfigMap", "extra/a"}, {"Secret", "shop/b"}, {"Service", "tenants/api"}, {"Deployment", "shop/api"},
	{"Deployment", "tenants/api"}, {"Job", "shop/migrate"}, {"Job", "tenants/check"}, {"APIService", "v1.other"},
	{"ValidatingWebhookConfiguration", "api"}, {"Foo", "shop/x"}, {"Foo", "tenants/y"},
}

// cast chooses the candidates, and puts some objects of others into the world.
func (s *simulation) cast() {
	for _, name := range stock {
		if s.chance(40) {
			continue
		}
		key, err := keyOf(name[0], name[1])
		if err != nil {
			s.t.Fatal(err)
		}
		set := defaultPolicies()
		set.Adoption = pick(s, slices.Concat(v1alpha1.AdoptionPolicies[:1], v1alpha1.AdoptionPolicies)...)
		if key.Kind == "CustomResourceDefinition" && set.Adoption == v1alpha1.AdoptionPolicyIgnore {
			set.Adoption = v1alpha1.AdoptionPolicyIfUnowned // a definition of others need not bring the type
		}
		set.Update = pick(s, v1alpha1.UpdatePolicyReplace, v1alpha1.UpdatePolicySsaMerge, v1alpha1.UpdatePolicySsaOverride)
		if !isCarrier(key) && s.chance(30) {
			set.Update = pick(s, v1alpha1.UpdatePolicyRecreate, v1alpha1.UpdatePolicyRecreateOnImmutable)
			s.world.immutable[key] = s.chance(50)
		}
		s.candidates[key] = set
		if s.chance(15) && key.Namespace != "tenants" && key.Kind != "Foo" && key.Namespace != "extra" {
			o := object{key: key, value: "theirs"}
			setOwner(&o, pick[holder](s, "none", "earlier", "other", "helm"))
			s.world.put(o)
			s.note("existing %s of %s", key, o.holder)
		}
	}
}

// isCarrier reports whether other objects depend on the object's being there.
func isCarrier(key Key) bool {
	return key.Kind == "Namespace" || key.Kind == "CustomResourceDefinition"
}

// draw makes a version of the component from the candidates.
func (s *simulation) draw() {
	s.driver.desired = nil
	// A type is there for its instances, a namespace for what lives in it.
	orders := map[string][2]int16{}
	for _, name := range stock {
		key, _ := keyOf(name[0], name[1])
		set, cast := s.candidates[key]
		if !cast || s.chance(20) {
			continue
		}
		carrier := carrierOf(key)
		limits, carried := orders[carrier]
		if carrier != "" && !carried {
			continue
		}
		s.vary(key, &set)
		if carried {
			set.Order.Apply, set.Order.Delete = max(set.Order.Apply, limits[0]), min(set.Order.Delete, limits[1])
		}
		if purge := set.Order.Purge; purge != nil && *purge < set.Order.Apply {
			set.Order.Purge = &set.Order.Apply
		}
		var defines []v1alpha1.TypeInfo
		if key.Kind == "CustomResourceDefinition" {
			defines = []v1alpha1.TypeInfo{{Group: "example.com", Kind: "Foo"}}
		}
		if isCarrier(key) {
			orders[key.Kind+" "+key.Name] = [2]int16{set.Order.Apply, set.Order.Delete}
		}
		s.tie(key, &set)
		s.driver.desired = append(s.driver.desired, desiredObject(key, pick(s, "1", "2", "3"), set, defines...))
	}
	s.rng.Shuffle(len(s.driver.desired), func(i, j int) {
		s.driver.desired[i], s.driver.desired[j] = s.driver.desired[j], s.driver.desired[i]
	})
	for _, d := range s.driver.desired {
		s.note("desired %s %s", d.Key, d.Digest)
	}
}

// tie lets the object depend on one that comes before it anyway, or could.
func (s *simulation) tie(key Key, set *policy.Set) {
	if s.chance(60) {
		return
	}
	for _, other := range s.driver.desired {
		order := other.Policies.Order
		earlier := order.Apply < set.Order.Apply || order.Apply == set.Order.Apply && stageOf(other.Key) <= stageOf(key)
		if earlier && order.Delete >= set.Order.Delete && s.chance(20) {
			set.DependsOn = append(set.DependsOn, policy.Reference(other.Key))
		}
	}
}

// carrierOf names the desired object that another needs; empty if it needs none.
func carrierOf(key Key) string {
	switch {
	case key.Kind == "Foo":
		return "CustomResourceDefinition foos.example.com"
	case key.Namespace == "extra":
		return "Namespace extra"
	default:
		return ""
	}
}

// vary draws the policies that may change between versions.
func (s *simulation) vary(key Key, set *policy.Set) {
	set.Order.Apply, set.Order.Delete = pick[int16](s, -1, 0, 0, 0, 1), pick[int16](s, -1, 0, 0, 0, 2)
	if isCarrier(key) {
		return
	}
	if s.chance(15) {
		set.Reconcile = v1alpha1.ReconcilePolicyOnce
	}
	if s.chance(20) {
		set.Delete = pick(s, v1alpha1.DeletePolicies[1:]...)
	}
	if key.Kind == "Job" && s.chance(60) || s.chance(5) {
		set.Order.Purge = new(pick[int16](s, -1, 0, 1, 3))
	}
	if s.chance(10) {
		set.Reapply = time.Minute
	}
}

// reconcile makes a reconcile, and reports whether nothing is left to do.
func (s *simulation) reconcile() bool {
	s.t.Helper()
	s.oracle.startReconcile()
	p, err := s.driver.reconcile()
	if s.driver.misled {
		s.misled++
	}
	crashed := errors.Is(err, errCrash)
	switch {
	case crashed:
		s.note("crash")
	case err != nil:
		s.fail("%v", err)
	}
	s.verify()
	return p.Done() && !crashed
}

// waves counts the waves that passes have to go through.
func (s *simulation) waves() int {
	orders := map[int16]bool{}
	for _, d := range s.driver.desired {
		orders[d.Policies.Order.Apply] = true
	}
	for _, item := range s.driver.durable {
		orders[item.DeleteOrder] = true
	}
	return len(orders)
}

// converge makes reconciles until nothing is left to do, in a world where objects get ready.
func (s *simulation) converge() {
	s.t.Helper()
	bound := 5*s.waves() + 8
	for range bound {
		s.world.progress()
		s.world.now = s.world.now.Add(EmptyStatusGracePeriod)
		if s.reconcile() {
			return
		}
	}
	s.fail("no end after %d passes", bound)
}
