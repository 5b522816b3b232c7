// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/changes"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

// story is what a user does with object x, which the receiver has to follow.
type story struct {
	name string
	play func(*play)
	// selector is what the operator watches; empty for everything.
	selector string
}

const foreign = "other.example.com/held"

var stories = []story{
	{name: "a life", play: func(p *play) {
		p.create("x", "1")
		p.untilKnown("x", "1")
		p.edit("x", func(obj *corev1.ConfigMap) { obj.Data["value"] = "2" })
		p.untilKnown("x", "2")
		p.delete("x")
		p.untilGone("x")
	}},
	{name: "changed at once", play: func(p *play) {
		p.create("x", "1")
		p.edit("x", func(obj *corev1.ConfigMap) { obj.Data["value"] = "2" })
		p.untilKnown("x", "2")
		p.delete("x")
		p.untilGone("x")
	}},
	{name: "deleted at once", play: func(p *play) {
		p.create("x", "1")
		p.delete("x")
		p.untilGone("x")
	}},
	{name: "recreated at once", play: func(p *play) {
		p.create("x", "1")
		p.untilKnown("x", "1")
		p.delete("x")
		p.untilGone("x")
		p.create("x", "2")
		p.untilKnown("x", "2")
		p.delete("x")
		p.untilGone("x")
	}},
	{name: "held by another client", play: func(p *play) {
		p.create("x", "1", func(obj *corev1.ConfigMap) { obj.Finalizers = []string{foreign} })
		p.untilKnown("x", "1")
		p.delete("x")
		p.untilFinalizersRemoved("x")
		p.edit("x", func(obj *corev1.ConfigMap) { obj.Finalizers = nil })
		p.untilGone("x")
	}},
	{name: "out of sight and back", selector: "seen=yes", play: func(p *play) {
		p.create("x", "1", visible)
		p.untilKnown("x", "1")
		if p.mayCrash {
			// An object that leaves the selector while no process is there stays claimed,
			// as the package says. It comes back for its deletion.
			p.delete("x")
			p.untilGone("x")
			return
		}
		p.edit("x", func(obj *corev1.ConfigMap) { obj.Labels = nil })
		p.untilFinalizersRemoved("x")
		p.edit("x", visible)
		p.untilKnown("x", "1")
		p.delete("x")
		p.untilGone("x")
	}},
}

// play is a run of a story, with an operator that may crash and others beside it.
type play struct {
	*bed
	story    story
	receiver *receiver
	gate     *wire.Gate
	stop     func()
	lives    int
	// mayCrash is set if the gate kills.
	mayCrash bool
	// mayDelete is set if another client may delete the object at any time.
	mayDelete bool
	// held and removed count the finalizers that another client added to objects and removed.
	held, removed atomic.Int32
}

// play returns the story before its start.
func (b *bed) play(s story) *play { return &play{bed: b, story: s, receiver: newReceiver()} }

// startOperator starts an operator with the gate.
func (p *play) startOperator(g *wire.Gate) {
	p.Helper()
	p.gate = g
	p.stop = p.operator("a", g)
}

// operator starts one.
func (p *play) operator(name string, g *wire.Gate) (stop func()) {
	p.Helper()
	var wrap func(http.RoundTripper) http.RoundTripper
	if g != nil {
		wrap = g.Wrap
	}
	options := changes.Options{}
	if p.story.selector != "" {
		selector := check.Must(labels.Parse(p.story.selector))(p)
		options.CacheOptions = &cache.Options{
			ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Label: selector}}, DefaultNamespaces: map[string]cache.Config{p.namespace: {}},
		}
	}
	return p.start(wrap, &corev1.ConfigMap{}, p.receiver.opinionated(name, g), options)
}

// rehearse waits until all operators see what happens: what leaves their selector before
// that, they never knew.
func (p *play) rehearse(operators ...string) {
	p.Helper()
	p.create("first", "1", visible)
	p.until("all operators have sent a notification", func() (bool, string) { return p.notifiedByAll(operators, "first"), p.receiver.text() })
	p.delete("first")
	p.until("the rehearsal is over", func() (bool, string) { return p.get("first") == nil, p.receiver.text() })
}

// visible makes an object one that every operator sees.
func visible(obj *corev1.ConfigMap) { obj.Labels = map[string]string{"seen": "yes"} }

// revive starts the operator again after a crash.
func (p *play) revive() {
	p.Helper()
	if !p.gate.HasCrashed() {
		return
	}
	p.stop()
	p.lives++
	p.gate = nil
	p.stop = p.operator(fmt.Sprintf("a%d", p.lives), nil)
}

// await is until for what an operator does, if need be in its next life.
func (p *play) await(what string, condition func() (bool, string)) {
	p.Helper()
	p.until(what, func() (bool, string) {
		p.revive()
		ok, seen := condition()
		return ok, seen + "; the receiver got: " + p.receiver.text()
	})
}

// untilKnown waits until the receiver knows the value and the pending finalizer of unhandled objects is off.
func (p *play) untilKnown(name, value string) {
	p.Helper()
	p.await(fmt.Sprintf("the receiver knows %s=%s", name, value), func() (bool, string) {
		obj := p.get(name)
		if p.mayDelete && (obj == nil || obj.DeletionTimestamp != nil) {
			return true, ""
		}
		return p.receiver.value(name) == value && obj != nil && slices.Contains(obj.Finalizers, finalizer) && !slices.Contains(obj.Finalizers, pending),
			fmt.Sprintf("the object is %+v", obj)
	})
}

// untilFinalizersRemoved waits until neither of our finalizers is on the object.
func (p *play) untilFinalizersRemoved(name string) {
	p.Helper()
	p.await(name+" has no finalizer of ours", func() (bool, string) {
		obj := p.get(name)
		if obj == nil {
			return true, ""
		}
		return !slices.Contains(obj.Finalizers, finalizer) && !slices.Contains(obj.Finalizers, pending), fmt.Sprintf("the object is %+v", obj)
	})
}

// untilGone waits until the object is gone. Finalizers of other clients are removed when we are done.
func (p *play) untilGone(name string) {
	p.Helper()
	p.await(name+" is gone", func() (bool, string) {
		obj := p.get(name)
		if obj != nil && slices.Equal(obj.Finalizers, []string{foreign}) {
			p.removed.Add(1)
			p.edit(name, func(obj *corev1.ConfigMap) { obj.Finalizers = nil })
		}
		return obj == nil, fmt.Sprintf("the object is %+v", obj)
	})
}

func (p *play) notifiedByAll(operators []string, object string) bool {
	return !slices.ContainsFunc(operators, func(name string) bool { return !p.receiver.notifiedBy(name, object) })
}

// finish checks that nothing is left, when all operators have seen all.
func (p *play) finish(operators ...string) {
	p.Helper()
	if held, removed := p.held.Load(), p.removed.Load(); held != removed {
		p.Errorf("another client added %d finalizers and removed %d: we removed the others", held, removed)
	}
	p.create("last", "1", visible)
	p.await("all operators have sent a notification of the last object", func() (bool, string) { return p.notifiedByAll(operators, "last"), "" })
	p.await("nothing is left in the receiver", func() (bool, string) {
		leaks := p.receiver.leaks("last")
		return len(leaks) == 0, fmt.Sprintf("leaks: %v", leaks)
	})
}

// disturbance is a write of another client to object x.
type disturbance struct {
	name  string
	write func(*play)
}

var disturbances = []disturbance{
	{"labels", func(p *play) {
		p.edit("x", func(obj *corev1.ConfigMap) { metav1.SetMetaDataLabel(&obj.ObjectMeta, "other", "was-here") })
	}},
	{"a finalizer in front", func(p *play) {
		held := false // by the last try
		written := p.edit("x", func(obj *corev1.ConfigMap) {
			if held = obj.DeletionTimestamp == nil && !slices.Contains(obj.Finalizers, foreign); held {
				obj.Finalizers = append([]string{foreign}, obj.Finalizers...)
			}
		})
		if held && written {
			p.held.Add(1)
		}
	}},
	{"deletion", func(p *play) { p.delete("x") }},
}
