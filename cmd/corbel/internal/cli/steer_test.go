// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/test/shops"
	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

// steers plays what an administrator does with a component, one command after the other.
func (b *bed) steers(t *testing.T) {
	b = b.in(t)
	// result leaves the progress of a wait out: how often the condition changes meanwhile differs.
	result := func(arguments ...string) string {
		a := b.run(arguments...)
		if a.code == 0 {
			a.err = ""
		}
		return a.text()
	}
	edited := shops.New("corner")
	edited.Spec.Replicas = 3
	file := b.manifest(t, edited)
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	check.NoError(b, os.WriteFile(bad, []byte("kind: [Shop"), 0o600))

	golden(t, "reconcile", result("reconcile", "shop/corner", "--wait"))
	golden(t, "suspend", result("suspend", "shop/corner", "--until", "2h", "--reason", "incident 7"))
	env.Until(b, "the Shop is suspended", func() error { return b.stateIs("corner", v1alpha1.StateSuspended) })
	golden(t, "suspend json", result("suspend", "shop/corner", "--until", "2h", "--reason", "incident 7", "-o", "json"))
	golden(t, "resume", result("resume", "shop/corner"))
	golden(t, "resume again", result("resume", "shop/corner"))
	golden(t, "rollout pin", result("rollout", "pin", "shop/corner"))
	golden(t, "rollout promote", result("rollout", "promote", "shop/corner"))
	golden(t, "rollout ignore", result("rollout", "ignore", "shop/corner"))
	check.SameNamed(t, "the annotation", "ignore", b.shop("corner").Annotations["shop.example.com/rollout"])
	golden(t, "rollout clear", result("rollout", "clear", "shop/corner"))
	golden(t, "rollout clear again", result("rollout", "clear", "shop/corner"))
	golden(t, "wait", result("wait", "shop/corner"))
	golden(t, "resume json", result("resume", "shop/corner", "-o", "json"))
	golden(t, "reconcile json", result("reconcile", "shop/corner", "--wait", "-o", "json"))
	golden(t, "plan nothing", result("plan", "shop/corner", "--exit-code"))
	golden(t, "plan", result("plan", "-f", file, "--exit-code"))
	golden(t, "plan json", result("plan", "shop/corner", "-f", file, "-o", "json"))
	golden(t, "plan deletion", result("plan", "shop/corner", "--delete", "--exit-code"))
	if got := b.shop("corner"); got.Spec.Replicas != 2 || got.Status.Revision != 1 {
		t.Errorf("a plan has changed the Shop: %d replicas, revision %d", got.Spec.Replicas, got.Status.Revision)
	}

	b.patchShop(`{"spec":{"replicas":3}}`)
	golden(t, "wait for a change", result("wait", "shop/corner"))
	golden(t, "diff of revisions", result("diff", "shop/corner", "--revision", "1..2"))
	if got := runAs(t.Context(), nil, "__complete", "rollback", "shop/corner", "-n", market, "--kubeconfig", b.env.Kubeconfig(), "--to", ""); !strings.HasPrefix(got.out, "1\tReady, started ") || strings.Contains(got.out, "\n2\t") {
		t.Errorf("rollback --to is completed to %q", got.out)
	}
	golden(t, "rollback", result("rollback", "shop/corner", "--wait"))
	if got := b.shop("corner").Status; got.Revision != 3 || got.History[0].RollbackTo != 1 {
		t.Errorf("revision %d: %v", got.Revision, got.History)
	}
	golden(t, "plan rolled back", b.run("plan", "shop/corner").text())
	golden(t, "plan end of rollback", result("plan", "shop/corner", "--end-rollback"))
	golden(t, "plan edit at end of rollback", result("plan", "-f", file, "--end-rollback"))
	golden(t, "rollback end", result("rollback", "shop/corner", "--end", "--wait"))
	golden(t, "rollback end again", result("rollback", "shop/corner", "--end"))
	golden(t, "plan end of no rollback", result("plan", "shop/corner", "--end-rollback"))
	golden(t, "rollback to none", result("rollback", "shop/corner", "--to", "7"))

	b.patchShop(`{"metadata":{"annotations":{"shop.example.com/require-approval":"true"}},"spec":{"replicas":2}}`)
	env.Until(b, "a plan waits", func() error {
		if b.shop("corner").Status.Approval == nil {
			return errors.New("none does")
		}
		return nil
	})
	golden(t, "approve no hash", result("approve", "shop/corner"))
	golden(t, "approve another", result("approve", "shop/corner", "--plan", "0123"))
	golden(t, "approve", result("approve", "shop/corner", "--plan", b.shop("corner").Status.Approval.Hash))
	golden(t, "wait for an approval", result("wait", "shop/corner"))
	golden(t, "approve none", result("approve", "shop/corner", "--plan", "0123"))

	b.patchShop(`{"metadata":{"annotations":{"shop.example.com/require-approval":null,"shop.example.com/rollback-to":"77"}}}`)
	env.Until(b, "the mistake is reported", func() error { return b.stateIs("corner", v1alpha1.StateError) })
	golden(t, "wait in vain", b.run("wait", "shop/corner").conclusion())
	b.patchShop(`{"metadata":{"annotations":{"shop.example.com/rollback-to":null}}}`)
	b.untilReady("corner")
	if got := b.run("wait", "shop/corner", "--for", "gone", "--timeout", "1s"); got.code != CodeNo || !strings.Contains(got.err, "Shop market/corner is not gone after 1s") {
		t.Errorf("a wait that is too short: %v", got)
	}
	b.waitsForACrashLoop(t)
	for name, arguments := range map[string][]string{
		"bad rollout":   {"rollout", "halt", "shop/corner"},
		"no rollout":    {"rollout"},
		"bad until":     {"suspend", "shop/corner", "--until", "soon"},
		"past until":    {"suspend", "shop/corner", "--until", "2001-01-01T00:00:00Z"},
		"bad goal":      {"wait", "shop/corner", "--for", "happy"},
		"bad plan":      {"plan", "-f", bad},
		"plan all":      {"plan", "--all", "shop/corner"},
		"plan two":      {"plan", "-f", bad, "--delete"},
		"plan two ends": {"plan", "shop/corner", "--end-rollback", "--delete"},
		"bad operator":  {"plan", "corner", "--operator", "/does/not/exist"},
		"bad end":       {"rollback", "shop/corner", "--end", "--to", "1"},
		"plan of none":  {"plan", "-f", b.manifest(t, shops.New("none"))},
		"plan of other": {"plan", "shop/none", "-f", file},
	} {
		a := b.run(arguments...)
		a.err = strings.ReplaceAll(a.err, bad, "bad.yaml")
		golden(t, name, a.text())
	}
}

// waitsForACrashLoop waits for the Shop while a container without a probe ends a second after each start, so that Kubernetes calls it ready
// in between.
func (b *bed) waitsForACrashLoop(t *testing.T) {
	crash := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: corner-web}\n" +
		"spec: {template: {metadata: {annotations: {podsim.corbel.run/run-for: 1s, podsim.corbel.run/exit-code: '3'}}}}"
	b.patchShop(fmt.Sprintf(`{"spec":{"timeout":"3s","patches":[{"patch":%q}]}}`, crash))
	env.Until(b, "the timeout has passed", func() error { return b.stateIs("corner", v1alpha1.StateError) })
	env.Until(b, "the cause is named", func() error {
		got := b.run("wait", "shop/corner", "--timeout", "1s")
		if got.code != CodeNo {
			t.Fatalf("a wait for a crash loop: %v", got)
		}
		if !strings.Contains(got.conclusion(), "Shop market/corner is not ready after AGE: not ready after AGE: Deployment market/corner-web: ") || !strings.Contains(got.err, "exit code 3") {
			return errors.New(got.conclusion())
		}
		return nil
	})
	env.Until(b, "the container is named", func() error {
		if got := b.run("why", "shop/corner"); !strings.Contains(got.out, "exit code 3") || !strings.Contains(got.out, " -c web --previous") {
			return errors.New(got.text())
		}
		return nil
	})
	b.patchShop(`{"spec":{"timeout":null,"patches":null}}`)
	b.untilReady("corner")
}

// conclusion is the text without the progress before the last line.
func (a answer) conclusion() string {
	lines := strings.Split(strings.TrimSpace(a.err), "\n")
	a.err = lines[len(lines)-1] + "\n"
	return a.text()
}

// shop reads a Shop.
func (b *bed) shop(name string) *shopv1alpha1.Shop {
	b.Helper()
	s := shops.New(name)
	check.NoError(b, b.client.Get(b.ctx, client.ObjectKeyFromObject(s), s))
	return s
}

// patchShop changes the Shop as its user would.
func (b *bed) patchShop(patch string) {
	b.Helper()
	check.NoError(b, b.client.Patch(b.ctx, shops.New("corner"), client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner("kubectl-edit")))
}

// manifest writes a Shop into a file.
func (b *bed) manifest(t *testing.T, s *shopv1alpha1.Shop) string {
	b.Helper()
	s.SetGroupVersionKind(shopv1alpha1.GroupVersion.WithKind("Shop"))
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": s.APIVersion, "kind": s.Kind, "metadata": map[string]any{"name": s.Name, "namespace": s.Namespace}, "spec": s.Spec,
	})
	check.NoError(b, err)
	file := filepath.Join(t.TempDir(), fmt.Sprintf("%s.yaml", s.Name))
	check.NoError(b, os.WriteFile(file, text, 0o600))
	return file
}

func TestProgressIsShownBeforeWhatWasAskedForHasBegun(t *testing.T) {
	var out bytes.Buffer
	f := newFrame(genericiooptions.IOStreams{ErrOut: &out})
	f.now = func() time.Time { return time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC) }
	w := &waiting{frame: f, goal: goal{text: "ready", reached: isReady, begun: func(inspect.Component) bool { return false }}}
	for _, said := range []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Message: "14 of 14 dependent objects are ready"},
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Message: "Deployment market/corner-web: 1 of 2 replicas ready"},
	} {
		c := inspect.Component{Object: &unstructured.Unstructured{}}
		c.Status.State, c.Status.Conditions = v1alpha1.StateProcessing, []metav1.Condition{said}
		check.NoError(t, w.look(inspect.Event{Component: c}))
	}
	const want = "12:00:00 not begun yet\n12:00:00 Processing: Deployment market/corner-web: 1 of 2 replicas ready\n"
	check.Same(t, want, out.String())
}
