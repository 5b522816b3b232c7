// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/helmrelease"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/wire"
)

// workJob is a Job of a chart; its pod has annotations, such as the exit code.
func workJob(name, fields, ofPod string, annotations ...string) string {
	template := "{metadata: {annotations: {" + ofPod + "}}, spec: {restartPolicy: Never, containers: [{name: work, image: 'work:1'}]}}"
	return head("batch/v1", "Job", name, annotations) + "spec: {backoffLimit: 0, " + fields + "template: " + template + "}\n"
}

// hooked is a chart with hooks of every kind, and a Job that is none and is removed soon after its end.
func hooked(t *testing.T) manifests.Generator {
	t.Helper()
	const before = "before-hook-creation"
	const answer = `answer: '{{ (lookup "v1" "ConfigMap" .Release.Namespace "asked").data | toJson }}'`
	texts := []string{
		head("v1", "ConfigMap", "own", nil) + "data: {value: '{{ .Values.value }}', " + answer + "}\n",
		workJob("short", "ttlSecondsAfterFinished: 1, ", "podsim.corbel.run/exit-code: '0'"),
	}
	for _, h := range [][3]string{
		{"pre-install", "pre-install", before}, {"post-install", "post-install", before + ",hook-succeeded"},
		{"pre-both", "pre-install,pre-upgrade", before + ",hook-succeeded"}, {"post-both", "post-install,post-upgrade", before},
		{"pre-upgrade", "pre-upgrade", before}, {"post-upgrade", "post-upgrade", before + ",hook-failed"},
		{"many", "pre-install,post-install,post-upgrade,pre-delete", before + ",hook-succeeded"},
		{"pre-delete", "pre-delete", before}, {"post-delete", "post-delete", "hook-succeeded"}, {"test", "test", before},
	} {
		code := "podsim.corbel.run/exit-code: '{{ if eq .Values.bad " + quoted(h[0]) + " }}1{{ else }}0{{ end }}', "
		texts = append(texts, workJob(h[0], "", code+answer, "helm.sh/hook", h[1], "helm.sh/hook-delete-policy", h[2]))
	}
	return chart(t, "bad: none\nvalue: first\n", strings.Join(texts, "---\n"))
}

func TestTheHooksOfAChartRunAsOftenAsHelmRunsThem(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	counts := &jobs{}
	f.startWith(t, hooked(t), counts.watch)
	bundle := f.bundle(t, map[string]string{"value": "one"})
	want := map[string]int{}
	expect := func(when string, ran ...string) {
		t.Helper()
		for _, name := range ran {
			want[name]++
		}
		counts.mu.Lock()
		defer counts.mu.Unlock()
		got := map[string]int{}
		for name, times := range counts.created {
			name, _, _ = strings.Cut(name, " ")
			got[name] += times
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", when, diff)
		}
	}
	f.ready(t, bundle)
	expect("installation", "pre-install", "pre-both", "many", "post-install", "post-both", "many-post", "short")
	for _, value := range []string{"two", "three"} {
		f.update(t, bundle, map[string]string{"value": value})
		f.ready(t, bundle)
		expect("upgrade to "+value, "pre-both", "pre-upgrade", "post-both", "post-upgrade", "many-post")
	}

	// A Job that its time to live removed does not run again.
	f.waitGone(t, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "short"}})
	f.ready(t, bundle)

	// An annotation, the timeout and another answer of the cluster are no upgrade.
	f.answer(t, bundle)
	f.ready(t, bundle)
	expect("annotation, timeout and answer")
	if bundle.Status.Revision != 3 {
		t.Errorf("revision %d, want 3", bundle.Status.Revision)
	}

	// A Job that was cleaned up does not run again.
	f.cleanUp(t, "post-both")

	f.update(t, bundle, map[string]string{"value": "four", "bad": "pre-upgrade"})
	f.namesFailed(t, bundle, "pre-upgrade")
	f.update(t, bundle, map[string]string{"value": "five"})
	f.ready(t, bundle)
	// In the failed upgrade nothing ran after the failed hook.
	expect("upgrade after a failed one", "pre-both", "pre-upgrade", "pre-both", "pre-upgrade", "post-both", "post-upgrade", "many-post")

	if err := f.Delete(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	f.gone(t, bundle)
	expect("deletion", "pre-delete", "many-pre-delete", "post-delete")
}

// answer changes what the chart looks up and what it cannot see of the component, and waits
// until the answer is applied.
func (f *fixture) answer(t *testing.T, bundle *Bundle) {
	t.Helper()
	asked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "asked"}, Data: map[string]string{"answer": "42"}}
	if err := f.Create(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the update of the Bundle", func(ctx context.Context) error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return err
		}
		bundle.Annotations = map[string]string{"reconcile.fluxcd.io/requestedAt": "now"}
		bundle.Spec.Timeout = &types.Duration{Duration: time.Minute}
		return f.Update(ctx, bundle)
	})
	eventually(t, "the answer to be applied", func(ctx context.Context) error {
		own := &corev1.ConfigMap{}
		if err := f.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: "own"}, own); err != nil {
			return err
		}
		if got := own.Data["answer"]; got != `{"answer":"42"}` {
			return fmt.Errorf("the answer is %s", got)
		}
		return nil
	})
}

// cleanUp deletes a Job, as a user would to free resources.
func (f *fixture) cleanUp(t *testing.T, name string) {
	t.Helper()
	job := &batchv1.Job{}
	key := client.ObjectKey{Namespace: f.namespace, Name: name}
	if err := f.Get(t.Context(), key, job); err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(t.Context(), job, client.PropagationPolicy("Background")); err != nil {
		t.Fatal(err)
	}
	f.waitGone(t, job)
}

func (f *fixture) waitGone(t *testing.T, job *batchv1.Job) {
	t.Helper()
	eventually(t, "the Job "+job.Name+" to be gone", func(ctx context.Context) error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(job), job); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
}

// namesFailed waits until the Job has failed, and the component says so.
func (f *fixture) namesFailed(t *testing.T, bundle *Bundle, name string) {
	t.Helper()
	job := &batchv1.Job{}
	eventually(t, "the failed hook to be named", func(ctx context.Context) error {
		if err := f.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, job); err != nil || job.Status.Failed == 0 {
			return fmt.Errorf("the Job did not fail: %v", err)
		}
		if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return err
		}
		state, reason, message := bundle.GetStatus().GetState()
		if state != v1alpha1.StateError && bundle.DeletionTimestamp.IsZero() || !strings.Contains(message, "Job "+f.namespace+"/"+name) {
			return fmt.Errorf("%s %s: %s", state, reason, message)
		}
		return nil
	})
}

// jobs counts how often each Job was created, by its name, the version of its template and
// the revision that it is for: work must not be done twice.
type jobs struct {
	mu      sync.Mutex
	created map[string]int
	// writes are the requests about Jobs that were answered, for the text of a failure.
	writes []string
}

// note looks at a request that was answered. A dry run creates nothing.
func (j *jobs) note(r *http.Request, response *http.Response) {
	if response == nil || r.Method == http.MethodGet || r.URL.Query().Has("dryRun") || !strings.Contains(r.URL.Path, "/jobs") {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes = append(j.writes, fmt.Sprintf("%s %s %s %d", time.Now().Format("15:04:05.000"), r.Method, r.URL.Path, response.StatusCode))
	if response.StatusCode != http.StatusCreated {
		return
	}
	var manifest struct {
		Metadata struct {
			Name        string
			Annotations map[string]string
		}
		Spec struct {
			Template struct {
				Metadata struct{ Annotations map[string]string }
			}
		}
	}
	if json.Unmarshal(bodyOf(r), &manifest) != nil {
		return
	}
	name := manifest.Metadata.Name
	if name == "" {
		name = path.Base(r.URL.Path)
	}
	if j.created == nil {
		j.created = map[string]int{}
	}
	name += " of version " + manifest.Spec.Template.Metadata.Annotations["version"]
	if revision := manifest.Metadata.Annotations[reconcilerName+"/"+v1alpha1.AnnotationRevision]; revision != "" {
		name += " for revision " + revision
	}
	j.created[name]++
}

// bodyOf returns the body of a request that is sent or was sent; nil if there is none.
func bodyOf(r *http.Request) []byte {
	if r.GetBody == nil {
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	content, _ := io.ReadAll(body)
	return content
}

// watch counts the Jobs that an operator creates.
func (j *jobs) watch(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		j.note(r, response)
		return response, err
	})
}

// check expects every Job to have been created at most once, and those that are wanted, if any
// are named, and no others.
func (j *jobs) check(t *testing.T, want []string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for name, times := range j.created {
		if times > 1 {
			t.Errorf("Job %s was created %d times:\n%s", name, times, strings.Join(j.writes, "\n"))
		}
	}
	got := slices.Sorted(maps.Keys(j.created))
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); want != nil && diff != "" {
		t.Errorf("Jobs that were created (-want +got):\n%s", diff)
	}
}

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
	owned := func() map[string]apitypes.UID {
		t.Helper()
		return read(t, func(ctx context.Context) (map[string]apitypes.UID, error) { return cast.owned(ctx, f) })
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
	UID     apitypes.UID
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
