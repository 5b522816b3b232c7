// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/helmrelease"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
)

// The charts of a folder are installed by Helm, taken over by an operator, and given back. The log of the API server
// has what happens to their objects.
const (
	adoptChartsVariable = "CORBEL_ADOPT_CHARTS" // the folder of the charts
	helmVariable        = "CORBEL_HELM"         // the program helm
	corbelVariable      = "CORBEL"              // the program corbel
)

func TestPublicChartsAreAdopted(t *testing.T) {
	folder := os.Getenv(adoptChartsVariable)
	if folder == "" {
		t.Skipf("%s names no folder of charts: see make adopt-charts", adoptChartsVariable)
	}
	charts, err := filepath.Glob(filepath.Join(folder, "*", "Chart.yaml"))
	if err != nil || len(charts) == 0 {
		t.Fatalf("there is no chart in %s: %v", folder, err)
	}
	var table strings.Builder
	for _, file := range charts {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			row := "failed"
			defer func() { fmt.Fprintf(&table, "| %s | %s |\n", filepath.Base(dir), row) }()
			row = adoptChart(t, dir)
		})
	}
	t.Logf("\n| chart | objects | pods | adopt: writes per object | pods made or deleted | objects changed | release: writes per object | pods made or deleted | objects changed |\n"+
		"|---|---|---|---|---|---|---|---|---|\n%s", table.String())
}

// adoptChart takes one chart there and back, and returns what it has found as cells of a table.
func adoptChart(t *testing.T, dir string) string {
	f := newFixture(t)
	f.adoptsReleases = true
	run := func(program string, arguments ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), os.Getenv(program), append(arguments, "-n", f.namespace, "--kubeconfig", f.env.Kubeconfig())...)
		command.Env = append(os.Environ(), "HELM_DRIVER=secret")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", filepath.Base(command.Path), strings.Join(arguments, " "), err, output)
		}
	}
	const name = "main"
	run(helmVariable, "install", name, dir, "--values", filepath.Join(dir, "values.yaml"), "--wait", "--timeout", "3m")
	reference := helmrelease.Reference{Namespace: f.namespace, Name: name, Revision: 1}
	release, err := helmrelease.Read(t.Context(), f, reference)
	if err != nil {
		t.Fatal(err)
	}
	generator, err := helm.New(os.DirFS(filepath.Dir(dir)), filepath.Base(dir), helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f.startWith(t, generator, nil)
	cast := &cast{objects: release.Objects, namespaces: []string{""}}
	owned := func() map[string]types.UID {
		t.Helper()
		return read(t, func(ctx context.Context) (map[string]types.UID, error) { return cast.owned(ctx, f) })
	}

	there := f.observe(t, release.Objects, func() {
		run(corbelVariable, "adopt", "helm", name, "--as", "widget/"+name, "--reconciler", reconcilerName, "--retire", "--timeout", "3m")
	})
	if _, err := helmrelease.Read(t.Context(), f, reference); err == nil {
		t.Errorf("%s is not retired", reference.Title())
	}
	if n := len(owned()); n < len(release.Objects) {
		t.Errorf("%d objects are owned, and the release had %d", n, len(release.Objects))
	}
	back := f.observe(t, release.Objects, func() {
		run(corbelVariable, "release", "widget/"+name, "--to-helm")
	})
	if left := names(owned()); len(left) > 0 {
		t.Errorf("objects are still owned: %v", left)
	}
	run(helmVariable, "uninstall", name, "--wait", "--timeout", "3m")
	if left := slices.Sorted(maps.Keys(f.statesOf(t, release.Objects))); len(left) > 0 {
		t.Errorf("objects are left over: %v", left)
	}
	return fmt.Sprintf("%d | %d | %s | %s", len(release.Objects), there.pods, there, back)
}

// observation is what happened to the objects of a release.
type observation struct {
	objects, pods, writes, podWrites, changed int
}

func (o observation) String() string {
	return fmt.Sprintf("%.2f | %d | %d", float64(o.writes)/float64(o.objects), o.podWrites, o.changed)
}

// observe calls a function, and reports an error for each pod that is created or deleted and for each object that changes meanwhile.
func (f *fixture) observe(t *testing.T, objects []*unstructured.Unstructured, do func()) observation {
	t.Helper()
	position, err := f.env.AuditPosition(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := f.statesOf(t, objects)
	namespaces := []string{f.namespace}
	for _, object := range objects {
		if namespace := object.GetNamespace(); namespace != "" && !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	o := observation{objects: len(before)}
	for _, namespace := range namespaces {
		pods := &corev1.PodList{}
		if err := f.List(t.Context(), pods, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		o.pods += len(pods.Items)
	}
	do()
	after := f.statesOf(t, objects)
	for key, was := range before {
		if diff := gocmp.Diff(was, after[key]); diff != "" {
			o.changed++
			t.Errorf("%s (-before +after):\n%s", key, diff)
		}
	}
	events, err := f.env.AuditEventsSince(t.Context(), position, namespaces...)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events {
		if event.Code > 299 || strings.Contains(event.URI, "dryRun=") || event.Verb == "get" || event.Verb == "list" || event.Verb == "watch" {
			continue
		}
		key := resourceKey(schema.GroupResource{Group: event.Group, Resource: event.Resource}, event.Namespace, event.Name)
		if _, ours := before[key]; ours && event.Subresource == "" && !strings.HasPrefix(event.User, "system:") {
			o.writes++
		}
		if event.Resource == "pods" && event.Subresource == "" && slices.Contains(namespaces, event.Namespace) {
			o.podWrites++
			t.Errorf("%s pod %s by %s", event.Verb, event.Name, event.User)
		}
	}
	return o
}

// objectState is what must stay of an object.
type objectState struct {
	UID     types.UID
	Content map[string]any // without status and metadata
}

func resourceKey(resource schema.GroupResource, namespace, name string) string {
	return strings.Join([]string{resource.String(), namespace, name}, " ")
}

// statesOf reads those of the objects that exist.
func (f *fixture) statesOf(t *testing.T, objects []*unstructured.Unstructured) map[string]objectState {
	t.Helper()
	states := map[string]objectState{}
	for _, object := range objects {
		mapping, err := f.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		if err != nil {
			t.Fatal(err)
		}
		key := client.ObjectKey{Name: object.GetName()}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			key.Namespace = cmp.Or(object.GetNamespace(), f.namespace)
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(object.GroupVersionKind())
		switch err := f.Get(t.Context(), key, live); {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			t.Fatal(err)
		}
		uid := live.GetUID()
		delete(live.Object, "metadata")
		delete(live.Object, "status")
		states[resourceKey(mapping.Resource.GroupResource(), key.Namespace, key.Name)] = objectState{uid, live.Object}
	}
	return states
}
