// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/internal/deploy"
	"github.com/corbel-run/corbel/test/check"
)

func TestASampleIsAppliedWhenItsFileChanges(t *testing.T) {
	const text = "apiVersion: shop.example.com/v1\nkind: Shop\nmetadata: {name: sample}\nspec: {replicas: 1}\n"
	folder, c := t.TempDir(), fake.NewClientBuilder().Build()
	applied, told, shown := map[string]*unstructured.Unstructured{}, map[string]string{}, 0
	check.NoError(t, os.Mkdir(filepath.Join(folder, "samples"), 0o755))
	// restart looks at the samples as the operator that is started again does, and returns the sample in the cluster.
	restart := func(text string) *unstructured.Unstructured {
		check.NoError(t, os.WriteFile(filepath.Join(folder, "samples", "shop.yaml"), []byte(text), 0o644))
		s := check.Must(readSamples(folder, deploy.Operator{}, applied))(t)
		tell := func(about, text string) bool { before := told[about]; told[about] = text; return before != text }
		check.Must(s.look(t.Context(), c, tell, func(context.Context, *unstructured.Unstructured) { shown++ }))(t)
		live := s.all[0].DeepCopy()
		check.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(live), live))
		return live
	}
	replicas := func(live *unstructured.Unstructured) int64 {
		value, _, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
		return value
	}
	live := restart(text)
	check.SameNamed(t, "applied", 1, replicas(live))
	check.SameNamed(t, "shown before it is ready", 0, shown)
	ready := map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "message": "2 of 2 dependent objects are ready"}
	live.Object["spec"] = map[string]any{"replicas": int64(3)}
	live.Object["status"] = map[string]any{"observedGeneration": live.GetGeneration(), "state": "Ready", "progress": "2/2", "conditions": []any{ready}}
	check.NoError(t, c.Update(t.Context(), live))
	live = restart(text)
	check.SameNamed(t, "changed in the cluster", 3, replicas(live))
	check.SameNamed(t, "shown when it is ready", 1, shown)
	check.SameNamed(t, "told", "Ready 2/2: 2 of 2 dependent objects are ready", told["Shop default/sample"])
	live = restart(strings.Replace(text, "replicas: 1", "replicas: 2", 1))
	check.SameNamed(t, "changed in its file", 2, replicas(live))
	check.NoError(t, c.Delete(t.Context(), live))
	check.SameNamed(t, "deleted in the cluster", 2, replicas(restart(strings.Replace(text, "replicas: 1", "replicas: 2", 1))))
}

func TestAPrerequisiteThatExistsStays(t *testing.T) {
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "default", "name": "database"}, "stringData": map[string]any{"password": "change-me"},
	}}
	theirs := secret.DeepCopy()
	theirs.Object["stringData"] = map[string]any{"password": "theirs"}
	c := fake.NewClientBuilder().WithObjects(theirs).Build()
	s := samples{prerequisites: []*unstructured.Unstructured{secret}, applied: map[string]*unstructured.Unstructured{}}
	check.NoError(t, s.apply(t.Context(), c, secret))
	check.SameNamed(t, "gone", true, check.Must(s.remove(t.Context(), c, nil))(t))
	live := secret.DeepCopy()
	check.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(secret), live))
	check.EqualNamed(t, "content", theirs.Object["stringData"], live.Object["stringData"])
}

func TestASecretBesideASampleIsReadyWhenItIsApplied(t *testing.T) {
	folder, told := t.TempDir(), ""
	check.NoError(t, os.Mkdir(filepath.Join(folder, "samples"), 0o755))
	check.NoError(t, os.WriteFile(filepath.Join(folder, "samples", "secret.yaml"), []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: sample}\n"), 0o644))
	s := check.Must(readSamples(folder, deploy.Operator{}, map[string]*unstructured.Unstructured{}))(t)
	tell := func(about, text string) bool { told = about + " " + text; return true }
	ready := check.Must(s.look(t.Context(), fake.NewClientBuilder().Build(), tell, func(context.Context, *unstructured.Unstructured) { t.Error("it is shown") }))(t)
	check.SameNamed(t, "ready", true, ready)
	check.SameNamed(t, "told", "Secret default/sample is applied", told)
}

func TestSamplesThatAreNotReadyInTimeAreNamed(t *testing.T) {
	sample := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "Shop", "metadata": map[string]any{"namespace": "default", "name": name}}}
	}
	d := &dev{told: map[string]string{"Shop default/a": "Processing: waits for its Secret"}}
	d.samples.all = []*unstructured.Unstructured{sample("a"), sample("b")}
	check.SameNamed(t, "error", "the samples are not ready after 10m0s\nShop default/a: Processing: waits for its Secret\nShop default/b: it does not exist", d.overdue().Error())
}

func TestAFolderThatIsGoneHasAFingerprint(t *testing.T) {
	folder := t.TempDir()
	if there, gone := fingerprint(folder), fingerprint(filepath.Join(folder, "gone")); there == "" || gone == "" {
		t.Errorf("got %q and %q", there, gone)
	}
}

func TestPrerequisitesOfSamplesComeBeforeAndGoAfterThem(t *testing.T) {
	folder, c := t.TempDir(), fake.NewClientBuilder().Build()
	check.NoError(t, os.MkdirAll(filepath.Join(folder, "samples", "prerequisites"), 0o755))
	for name, text := range map[string]string{
		"shop.yaml":                  "apiVersion: shop.example.com/v1\nkind: Shop\nmetadata: {name: sample, finalizers: [shop.example.com]}\n",
		"prerequisites/objects.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: database}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: other}\n",
	} {
		check.NoError(t, os.WriteFile(filepath.Join(folder, "samples", name), []byte(text), 0o644))
	}
	s := check.Must(readSamples(folder, deploy.Operator{}, map[string]*unstructured.Unstructured{}))(t)
	var order, told []string
	for _, object := range s.pending {
		order = append(order, titleOf(object))
	}
	check.Equal(t, []string{"Secret default/database", "ConfigMap other/settings", "Shop default/sample"}, order)
	tell := func(about, _ string) bool { told = append(told, about); return true }
	check.Must(s.look(t.Context(), c, tell, nil))(t)
	check.Equal(t, []string{"Shop default/sample"}, told)
	exist := func() (n int) {
		for _, object := range s.prerequisites {
			if c.Get(t.Context(), client.ObjectKeyFromObject(object), object.DeepCopy()) == nil {
				n++
			}
		}
		return n
	}
	check.SameNamed(t, "gone", false, check.Must(s.remove(t.Context(), c, tell))(t))
	check.SameNamed(t, "prerequisites while the sample is there", 2, exist())
	live := s.all[0].DeepCopy()
	check.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(live), live))
	live.SetFinalizers(nil)
	check.NoError(t, c.Update(t.Context(), live))
	check.SameNamed(t, "gone", true, check.Must(s.remove(t.Context(), c, tell))(t))
	check.SameNamed(t, "prerequisites after the sample", 0, exist())
}
