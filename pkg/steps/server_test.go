// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/corbel-run/corbel/examples/bucket/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/steps"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

// TestAServerWithTheGeneratedDefinitionKeepsALock takes a lock and releases it on a real API server.
func TestAServerWithTheGeneratedDefinitionKeepsALock(t *testing.T) {
	config := env.Shared(t).Config()
	check.Must(envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{"../../examples/bucket/config/crd"}}))(t)
	scheme := runtime.NewScheme()
	check.NoError(t, v1alpha1.SchemeBuilder.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	check.NoError(t, err)
	b := &v1alpha1.Bucket{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: v1alpha1.BucketSpec{Quota: 1}}
	check.NoError(t, c.Create(t.Context(), b))
	// compare compares the step on the server with the one in memory.
	compare := func(status steps.ConditionStatus) *v1alpha1.Bucket {
		t.Helper()
		stored := &v1alpha1.Bucket{}
		check.NoError(t, c.Get(t.Context(), key, stored))
		diff := cmp.Diff(stored.Status, b.Status)
		if diff != "" || stored.ResourceVersion != b.ResourceVersion || !stored.Status.Steps.TypeHasStatus(step, status) {
			t.Errorf("want %s, versions %s and %s (-server +memory):\n%s", status, stored.ResourceVersion, b.ResourceVersion, diff)
		}
		return stored
	}
	err = steps.NewLock(b, c, step).Execute(t.Context(), func(condition steps.Condition) (steps.Condition, error) {
		compare(steps.ConditionLocked)
		b.Status.Quota = 1
		condition.Status, condition.Reason = steps.ConditionCreated, "Bucket Created"
		return condition, nil
	})
	check.NoError(t, err)
	if after := compare(steps.ConditionCreated); after.Status.Quota != 1 || after.Status.Steps.FindType(step).Lock != nil {
		t.Errorf("after the release: %+v", after.Status)
	}
}

// pruning returns a client of a server that does not keep all of the status that is sent.
func pruning(direct client.WithWatch, prune func(status map[string]any)) client.Client {
	return interceptor.NewClient(direct, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := c.SubResource(sub).Patch(ctx, obj, patch, opts...); err != nil {
				return err
			}
			prune(obj.(*unstructured.Unstructured).Object["status"].(map[string]any))
			return c.SubResource(sub).Update(ctx, obj)
		},
	})
}

func TestWhatTheServerDoesNotKeepLocksNothing(t *testing.T) {
	first := func(status map[string]any) map[string]any {
		if list, _ := status["steps"].([]any); len(list) > 0 {
			return list[0].(map[string]any)
		}
		return map[string]any{}
	}
	for name, tc := range map[string]struct {
		prune func(status map[string]any) // nil: there is no status subresource
		field string
	}{
		"steps":  {func(status map[string]any) { delete(status, "steps") }, "status.steps"},
		"record": {func(status map[string]any) { delete(first(status), "lock") }, "status.steps[].lock"},
		"key": {func(status map[string]any) {
			unstructured.RemoveNestedField(first(status), "lock", "attemptKey")
		}, "status.steps[].lock"},
		"nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			c := pruning(newServer(stored()).Direct, tc.prune)
			if tc.prune == nil {
				c = fake.NewClientBuilder().WithScheme(scheme()).WithObjects(stored()).Build()
			}
			b := read(t, c)
			err := steps.NewLock(b, c, step).Execute(t.Context(), func(c steps.Condition) (steps.Condition, error) {
				t.Error("the task ran")
				return c, nil
			})
			pruned, isPruned := errors.AsType[*patch.PrunedError](err)
			_, isMissing := errors.AsType[*patch.NoStatusSubresourceError](err)
			if isPruned != (tc.prune != nil) || isMissing == isPruned || isPruned && pruned.Fields[0] != tc.field {
				t.Errorf("error: %v", err)
			}
			if after := read(t, c); len(after.Status.Steps) != 0 || len(b.Status.Steps) != 0 || after.ResourceVersion != b.ResourceVersion {
				t.Errorf("left on the server: %+v", after.Status)
			}
		})
	}
}
