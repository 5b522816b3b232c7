// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// object makes a manifest; the name can be "namespace/name".
func object(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	for key, value := range content {
		o.Object[key] = value
	}
	if namespace, rest, found := strings.Cut(name, "/"); found {
		o.SetNamespace(namespace)
		name = rest
	}
	o.SetName(name)
	return o
}

func placed(o *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	o.SetNamespace(namespace)
	return o
}

func podTemplate(name string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": name}},
		"spec": map[string]any{
			"restartPolicy": "Never",
			"containers":    []any{map[string]any{"name": "main", "image": "web:1"}},
		},
	}
}

// deployment has no replicas, but counts as ready only when its controller says so.
func deployment(name string) *unstructured.Unstructured {
	template := podTemplate(name)
	template["spec"].(map[string]any)["restartPolicy"] = "Always"
	return object("apps/v1", "Deployment", name, map[string]any{"spec": map[string]any{
		"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": name}}, "template": template,
	}})
}

// webhook is the configuration of an admission webhook that is called for nothing.
func webhook(name string) *unstructured.Unstructured {
	return object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", name, map[string]any{"webhooks": []any{map[string]any{
		"name": "check.engine.corbel.run", "admissionReviewVersions": []any{"v1"}, "sideEffects": "None", "failurePolicy": "Ignore",
		"clientConfig":      map[string]any{"url": "https://127.0.0.1:1/"},
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "none"}},
		"rules": []any{map[string]any{
			"apiGroups": []any{"none.example.com"}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"things"},
		}},
	}}})
}

// available is what the controller of a Deployment says when all is well.
func (b *bench) available(o *unstructured.Unstructured) {
	b.t.Helper()
	live := o.DeepCopy()
	if err := b.Get(b.t.Context(), client.ObjectKeyFromObject(o), live); err != nil {
		b.t.Fatal(err)
	}
	live.Object["status"] = map[string]any{
		"observedGeneration": live.GetGeneration(), "replicas": int64(1), "updatedReplicas": int64(1), "readyReplicas": int64(1), "availableReplicas": int64(1),
		"conditions": []any{
			map[string]any{"type": "Available", "status": "True"},
			map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
		},
	}
	if err := b.Status().Update(b.t.Context(), live); err != nil {
		b.t.Fatal(err)
	}
}

// stages are objects of every stage of one wave, in the order in which they are written.
func stages(namespace string) []*unstructured.Unstructured {
	own := namespace + "-own"
	return []*unstructured.Unstructured{
		object("v1", "Namespace", own, nil),
		definition("stages"+strings.ReplaceAll(namespace, "-", ""), "Stage"+strings.ReplaceAll(namespace, "-", "")),
		object("v1", "ServiceAccount", own+"/account", nil),
		object("v1", "Secret", own+"/secret", nil),
		placed(deployment("server"), own),
		webhook(namespace),
		placed(annotated(instance("Stage"+strings.ReplaceAll(namespace, "-", ""), "instance"), "ready-when", "true"), own),
	}
}

// kindsOf returns the kinds in the order of the first matching request.
func kindsOf(requests []string) (kinds []string) {
	for _, request := range requests {
		method, path, _ := strings.Cut(request, " ")
		if method == "GET" {
			continue
		}
		for _, known := range []string{
			"customresourcedefinitions", "stages", "validatingwebhookconfigurations", "deployments", "secrets", "serviceaccounts", "namespaces",
		} {
			if strings.Contains(path, "/"+known) {
				if !slices.Contains(kinds, known) {
					kinds = append(kinds, known)
				}
				break
			}
		}
	}
	return kinds
}

func TestTheStagesOfAWaveAreWrittenInOrderAndRemovedInTheirOwn(t *testing.T) {
	b := newBench(t)
	between := b.interpose(t, reconciler.ReconcilerOptions{})
	parts := stages(b.namespace)
	b.writeStages(parts)
	b.expectOrder(between.requests(""),
		"namespaces", "customresourcedefinitions", "serviceaccounts", "secrets", "deployments", "validatingwebhookconfigurations", "stages")
	b.removeStages(parts)
	b.expectOrder(between.requests("DELETE"),
		"validatingwebhookconfigurations", "stages", "deployments", "secrets", "serviceaccounts", "customresourcedefinitions", "namespaces")
}

// expectOrder compares the kinds of the writes. Secrets and service accounts are
// removed in one stage, in any order.
func (b *bench) expectOrder(requests []string, want ...string) {
	b.t.Helper()
	got := kindsOf(requests)
	if i := slices.Index(got, "secrets"); slices.Index(want, "secrets") < slices.Index(want, "serviceaccounts") && i > 0 && got[i-1] == "serviceaccounts" {
		got[i-1], got[i] = got[i], got[i-1]
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("written in the order %v, want %v", got, want)
	}
}

func (b *bench) writeStages(parts []*unstructured.Unstructured) {
	b.t.Helper()
	var objects []client.Object
	for _, part := range parts {
		objects = append(objects, part)
	}
	slices.Reverse(objects) // their order in the manifests says nothing
	server, hook := parts[4], parts[5]
	b.until("everything but the late stages", func() bool {
		outcome := b.mustWait(objects...)
		return b.exists(server) && waiting(outcome, parts[1].GetName()) == ""
	})
	if b.exists(hook) {
		b.t.Error("the webhook configuration was written before its server is ready")
	}
	b.available(server)
	b.until("the late stages", func() bool {
		outcome, err := b.apply(objects...)
		if err != nil {
			b.t.Fatal(err)
		}
		return outcome.Done()
	})
}

// removeStages holds the instance for a while: its server must stay until it is gone.
func (b *bench) removeStages(parts []*unstructured.Unstructured) {
	b.t.Helper()
	server, inst := parts[4], parts[6]
	b.setFinalizers(inst, "example.com/hold")
	if outcome, err := b.delete(); err != nil || outcome.Done() || !b.exists(server) {
		b.t.Errorf("delete: %v, done: %t, the server exists: %t, want it to stay until the instance is gone", err, outcome.Done(), b.exists(server))
	}
	b.setFinalizers(inst)
	b.until("the namespace to be deleted", func() bool {
		if _, err := b.delete(); err != nil {
			b.t.Fatal(err)
		}
		return !b.exists(parts[0])
	})
}

func (b *bench) setFinalizers(o *unstructured.Unstructured, finalizers ...string) {
	b.t.Helper()
	live := o.DeepCopy()
	if err := b.Get(b.t.Context(), client.ObjectKeyFromObject(o), live); err != nil {
		b.t.Fatal(err)
	}
	live.SetFinalizers(finalizers)
	if err := b.Update(b.t.Context(), live); err != nil {
		b.t.Fatal(err)
	}
}
