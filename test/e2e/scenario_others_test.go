// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/vocabulary"
)

// deed is what another client does to a dependent, the ConfigMap x, right before
// something is asked of its component.
type deed struct {
	name string
	do   func(ctx context.Context, f *fixture) error
	// theirs is set if x is not ours from then on, recreated if it is another object.
	theirs, recreated bool
	policy            string // of adoption
}

var deeds = []deed{
	{name: "edit", do: patchX(`{"data":{"version":"theirs"}}`)},
	{name: "take our label off", do: patchX(`{"metadata":{"labels":{"` + reconcilerName + `/owner-id":null}}}`)},
	{name: "take our label and annotation off", do: patchX(
		`{"metadata":{"labels":{"` + reconcilerName + `/owner-id":null},"annotations":{"` + reconcilerName + `/owner":null}}}`)},
	{name: "delete", do: deleteX, recreated: true},
	{name: "delete and create for Helm", do: replaceX(map[string]string{"meta.helm.sh/release-name": "web"}), theirs: true, recreated: true},
	{name: "delete and create without label and annotation", do: replaceX(nil), theirs: true, recreated: true, policy: "never"},
	{name: "give to Helm", do: patchX(`{"metadata":{"annotations":{"meta.helm.sh/release-name":"web"}},"data":{"version":"theirs"}}`), theirs: true},
}

// otherClientScenarios have another client that changes objects while the operator works.
func otherClientScenarios() []*scenario {
	var all []*scenario
	for _, d := range deeds {
		var policy []string
		if d.policy != "" {
			policy = []string{"adoption-policy", d.policy}
		}
		rest := []string{secret("rest", "1"), serviceAccount("account")}
		installed := map[string][]string{"main": append(slices.Clone(rest), configMap("x", "1", policy...))}
		for _, ask := range []string{"change", "change of others", "drop", "delete"} {
			s := &scenario{name: d.name + ", and " + ask, installed: installed, meanwhile: d.now, after: d.expectOrphaned(ask)}
			if d.theirs {
				// Our label stays on it for as long as it is asked for.
				s.refused = []string{"ConfigMap $NS/x"}
			}
			if ask != "delete" {
				s.owned = []string{"Secret $NS/rest", "ServiceAccount $NS/account"}
			}
			switch ask {
			case "change", "change of others":
				x := configMap("x", "2", policy...)
				if ask == "change of others" {
					x = configMap("x", "1", policy...)
				}
				s.desired = map[string][]string{"main": {secret("rest", "2"), rest[1], x}}
				if d.theirs {
					s.ends = map[string]string{"main": vocabulary.ReasonOwnerConflict}
				} else {
					s.owned = append([]string{"ConfigMap $NS/x"}, s.owned...)
				}
			case "drop":
				s.desired = map[string][]string{"main": {secret("rest", "2"), rest[1]}}
			}
			if d.recreated {
				s.recreated = []string{"ConfigMap $NS/x"}
			}
			all = append(all, s)
		}
	}
	return append(all, heldScenarios...)
}

// now does the deed.
func (d deed) now(t testing.TB, f *fixture) {
	t.Helper()
	eventually(t, d.name, func(ctx context.Context) error { return d.do(ctx, f) })
}

// expectOrphaned expects x to be theirs, or not to be left over.
func (d deed) expectOrphaned(ask string) func(t testing.TB, f *fixture) {
	return func(t testing.TB, f *fixture) {
		t.Helper()
		x := &corev1.ConfigMap{}
		err := f.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "x"}, x)
		left := d.theirs || !gone(ask)
		switch {
		case !left && !apierrors.IsNotFound(err):
			t.Errorf("x is left over: %v, %v", x, err)
		case left && err != nil:
			t.Error(err)
		case d.theirs && gone(ask) && x.Labels[reconcilerName+"/owner-id"] != "":
			t.Errorf("x still has our label: %v", x)
		case d.theirs && (x.Data["version"] != "theirs" || x.DeletionTimestamp != nil):
			t.Errorf("x is not as they want it: %v", x)
		}
	}
}

// gone reports whether x is not asked for any more.
func gone(ask string) bool { return ask == "drop" || ask == "delete" }

func patchX(text string) func(ctx context.Context, f *fixture) error {
	return func(ctx context.Context, f *fixture) error {
		x := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "x"}}
		return f.Patch(ctx, x, client.RawPatch("application/merge-patch+json", []byte(text)))
	}
}

func deleteX(ctx context.Context, f *fixture) error {
	return client.IgnoreNotFound(f.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "x"}}))
}

// replaceX puts another object in the place of x, faster than the operator does,
// which creates it anew, too.
func replaceX(annotations map[string]string) func(ctx context.Context, f *fixture) error {
	return func(ctx context.Context, f *fixture) error {
		if err := deleteX(ctx, f); err != nil {
			return err
		}
		return f.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "x", Annotations: annotations},
			Data:       map[string]string{"version": "theirs"},
		})
	}
}

// heldScenarios drop or delete an object that another client holds by a finalizer and
// that loses its label while it is being deleted: it leaves the watches as if
// it were gone, and no event follows when it is.
var heldScenarios = []*scenario{
	{
		name:      "take our label off what is being pruned",
		installed: map[string][]string{"main": {heldX, secret("rest", "1")}},
		desired:   map[string][]string{"main": {secret("rest", "2")}},
		meanwhile: unlabelWhileDeleted,
		owned:     []string{"Secret $NS/rest"},
		after:     configMapsAre(),
	},
	{
		name:      "take our label off what is being deleted",
		installed: map[string][]string{"main": {heldX, secret("rest", "1")}},
		meanwhile: unlabelWhileDeleted,
		after:     configMapsAre(),
	},
}

const holder = "test.corbel.run/held"

var heldX = configMap("x", "1")

// unlabelWhileDeleted removes our label, as soon as x is being deleted, and lets
// it go a while after that.
func unlabelWhileDeleted(t testing.TB, f *fixture) {
	t.Helper()
	eventually(t, "the finalizer on x", func(ctx context.Context) error {
		return patchX(`{"metadata":{"finalizers":["`+holder+`"]}}`)(ctx, f)
	})
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	ctx := t.Context()
	running.Go(func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			if err := letGo(ctx, f); err == nil {
				return
			}
			<-ticker.C
		}
	})
}

func letGo(ctx context.Context, f *fixture) error {
	x := &corev1.ConfigMap{}
	switch err := f.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: "x"}, x); {
	case err != nil:
		return client.IgnoreNotFound(err)
	case x.DeletionTimestamp == nil:
		return errors.New("it is not being deleted")
	}
	if x.Labels[reconcilerName+"/owner-id"] != "" {
		if err := patchX(`{"metadata":{"labels":{"`+reconcilerName+`/owner-id":null}}}`)(ctx, f); err != nil {
			return err
		}
		time.Sleep(300 * time.Millisecond) // nothing waits for this; an operator that treats it as gone has time to fail
	}
	return patchX(`{"metadata":{"finalizers":null}}`)(ctx, f)
}
