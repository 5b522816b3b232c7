// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/pkg/component"
)

// TestUpgrade installs the component with the operator from, stops that, and starts o, which has to
// take over: the component is Ready again, and every dependent is there and has kept its uid. The
// dependents that the upgrade is meant to recreate or to delete are named by patterns as in the
// field Retained, such as "Job migrate-*".
//
// If both operators render the same manifests, o must write nothing but the component and the
// Secrets that belong to it. At last o deletes the component, and nothing must be left.
// Prerequisites, the field Retained and the timeout are taken from o.
func (o Operator[T]) TestUpgrade(t testing.TB, from Operator[T], obj T, recreated ...string) {
	t.Helper()
	from.check(t)
	i := o.prepare(t, obj)
	defer i.end(t)
	i.operator.SetUp, i.operator.Scheme, i.operator.As = from.SetUp, from.Scheme, from.As
	i.start(t, &connection{})
	i.create(t)
	before := i.awaitReady(t, nil)
	manifests := manifestsDigest(i.Component.GetStatus())
	i.process.stop(t)

	written := len(i.record.all(0))
	i.operator = o
	i.start(t, &connection{})
	i.network.arm()
	i.change(t, func(T) {})
	after := i.awaitReady(t, nil)
	for name, d := range before {
		switch now, exists := after[name]; {
		case matches(recreated, name):
		case !exists:
			t.Errorf("the upgrade removes %s", name)
		case now.uid != d.uid:
			t.Errorf("the upgrade recreates %s: its uid was %s and is %s", name, d.uid, now.uid)
		}
	}
	if manifestsDigest(i.Component.GetStatus()) == manifests {
		if writes := i.writesBesideComponent(written); len(writes) > 0 {
			t.Errorf("the manifests are the same, and yet the new operator writes:\n%s", strings.Join(writes, "\n"))
		}
	}
	i.Delete(t)
}

// manifestsDigest is the digest of the rendered manifests: the second part of the processing
// digest.
func manifestsDigest(status *component.Status) string {
	return append(strings.Split(status.ProcessingDigest, "/"), "")[1]
}

// writesBesideComponent returns the writes, from a request on, that are neither to the
// component nor to its inventory and its revisions.
func (i *Installed[T]) writesBesideComponent(from int) []string {
	bookkeeping := map[string]bool{}
	for o, c := range i.record.creations() {
		if c.bookkeeping {
			bookkeeping[o.name] = true
		}
	}
	var found []string
	for _, q := range i.record.writes(from) {
		ofComponent := q.resource.GroupResource() == i.resource.GroupResource() && q.name == i.Component.GetName()
		if !ofComponent && !(q.resource.Resource == "secrets" && bookkeeping[q.name]) {
			found = append(found, fmt.Sprintf("%s (answered with %d)", q, q.code))
		}
	}
	return found
}
