// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAClaimThatSomebodyLetGrowBeyondItsManifestStaysAsItIs(t *testing.T) {
	for _, policy := range []string{"replace", "ssa-merge", "ssa-override", "recreate"} {
		t.Run("under "+policy, func(t *testing.T) {
			b := newBench(t)
			b.create(parse(t, `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: growing-`+b.namespace+`}, provisioner: example.com/p, allowVolumeExpansion: true}`))
			claim := func(app string) *unstructured.Unstructured {
				return parse(t, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim, labels: {app: `+app+`}, annotations: {`+engineName+`/update-policy: `+policy+`}}
spec: {storageClassName: growing-`+b.namespace+`, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`)
			}
			if _, err := b.apply(claim("a")); err != nil {
				t.Fatal(err)
			}
			live := b.in(claim("a"))
			patch := func(text string) {
				t.Helper()
				if err := b.Patch(t.Context(), live, client.RawPatch(types.MergePatchType, []byte(text))); err != nil {
					t.Fatal(err)
				}
			}
			patch(`{"spec": {"volumeName": "volume"}}`)
			b.status(claim("a"), `{phase: Bound, capacity: {storage: 1Gi}}`)
			patch(`{"spec": {"resources": {"requests": {"storage": "3Gi"}}}}`)
			b.status(claim("a"), `{capacity: {storage: 3Gi}}`)
			uid := live.GetUID()

			b.mustApply(claim("a")) // the size differs from the manifest
			if policy != "recreate" {
				b.mustApply(claim("b"))
			}
			if outcome := b.mustApply(claim(map[bool]string{true: "a", false: "b"}[policy == "recreate"])); len(outcome.Steps) > 0 {
				t.Errorf("steps %v, want rest", outcome.Steps)
			}
			if err := b.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
				t.Fatal(err)
			}
			size, _, _ := unstructured.NestedString(live.Object, "spec", "resources", "requests", "storage")
			if size != "3Gi" || live.GetUID() != uid {
				t.Errorf("the size is %s, the uid %s, it was %s", size, live.GetUID(), uid)
			}
		})
	}
}

// A change of the component alone is no change of what was asked for.
func TestAnUnchangedNamespaceClaimOrJobSurvivesAChangeOfTheComponent(t *testing.T) {
	b := newBench(t)
	rules := ` annotations: {` + engineName + `/update-policy: recreate, ` + engineName + `/reconcile-policy: on-object-or-component-change, ` + engineName + `/ready-when: "true"}}`
	objects := []client.Object{
		b.in(parse(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: claim,`+rules+`, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`)),
		b.in(parse(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: work,`+rules+`, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`)),
		parse(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+b.namespace+`-own,`+rules+`}`),
	}
	uids := func() (all []types.UID) {
		for _, object := range objects {
			live := object.DeepCopyObject().(client.Object)
			if err := b.Get(t.Context(), client.ObjectKeyFromObject(object), live); err != nil {
				t.Fatal(err)
			}
			all = append(all, live.GetUID())
		}
		return all
	}
	b.applyAs("1", objects...)
	before := uids()
	outcome := b.applyAs("2", objects...)
	if outcome.Steps["replace"] != len(objects) || len(outcome.Steps) != 1 {
		t.Errorf("steps %v, want writes in place", outcome.Steps)
	}
	for i, uid := range uids() {
		if uid != before[i] {
			t.Errorf("%s was recreated", objects[i].GetName())
		}
	}
}
