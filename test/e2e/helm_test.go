// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
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
		if diff := cmp.Diff(want, got); diff != "" {
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
