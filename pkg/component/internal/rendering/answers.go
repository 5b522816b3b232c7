// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"context"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/renders"
)

// answers notes what a generator reads with its clients while it renders.
type answers struct {
	lock    sync.Mutex
	read    []string
	nothing bool
	// asked: something was looked up, or listed.
	asked bool
	// random says whether random values or the time were used.
	random *renders.Randomness
}

// client returns a client that notes its reads.
func (a *answers) client(c client.Client) client.Client { return &noting{Client: c, answers: a} }

func (a *answers) add(parts ...string) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.read = append(a.read, digest.Combine(parts...))
}

func (a *answers) noteNothing(parts ...string) {
	a.add(parts...)
	a.lock.Lock()
	defer a.lock.Unlock()
	a.nothing = true
}

// noteServed notes what the target serves, if that is known: a generator may have asked.
func (a *answers) noteServed(ctx context.Context) {
	target, ok := renders.Target(ctx)
	if !ok {
		return
	}
	if served, known := target.Types().LastServed(); known {
		a.add(append([]string{"served", served.Version}, served.APIVersions...)...)
	}
}

// digest identifies everything that was read, in whatever order.
func (a *answers) digest() string {
	a.lock.Lock()
	defer a.lock.Unlock()
	return digest.Combine(slices.Sorted(slices.Values(a.read))...)
}

// looked reports whether something was looked up.
func (a *answers) looked() bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.asked
}

func (a *answers) noteLook() {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.asked = true
}

// foundNothing reports whether something was looked for that does not exist.
func (a *answers) foundNothing() bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.nothing
}

// noting is a client that notes the versions of what it reads.
type noting struct {
	client.Client
	answers *answers
}

func (n *noting) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	n.answers.noteLook()
	err := n.Client.Get(ctx, key, object, options...)
	switch kind := n.kindOf(object); {
	case apierrors.IsNotFound(err):
		n.answers.noteNothing("get", kind, key.String())
	case err == nil:
		n.answers.add("get", kind, key.String(), string(object.GetUID()), object.GetResourceVersion())
	}
	return err
}

func (n *noting) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	n.answers.noteLook()
	err := n.Client.List(ctx, list, options...)
	if err != nil {
		return err
	}
	parts := []string{"list", n.kindOf(list)}
	_ = apimeta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok {
			parts = append(parts, string(object.GetUID()), object.GetResourceVersion())
		}
		return nil
	})
	if apimeta.LenList(list) == 0 {
		n.answers.noteNothing(parts...)
	} else {
		n.answers.add(parts...)
	}
	return nil
}

func (n *noting) kindOf(object runtime.Object) string {
	gvk, err := n.GroupVersionKindFor(object)
	if err != nil {
		return ""
	}
	return gvk.String()
}
