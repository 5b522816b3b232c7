// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/test/check"
)

func TestRequestsAreReadAsTheyAreWritten(t *testing.T) {
	now := time.Unix(1779963751, 0)
	for _, action := range []string{ActionPlan, ActionEdited, ActionDelete, ActionDiff, ActionManifests} {
		request := NewRequest(action, now)
		if action == ActionDiff {
			request.From, request.To = 3, 5
		}
		got, err := ParseRequest(request.String())
		if err != nil || got != request {
			t.Errorf("%s: got %+v, error %v, want %+v", request, got, err, request)
		}
		if got.IsExpired(now.Add(Life-time.Second)) || !got.IsExpired(now.Add(Life)) || !got.IsExpired(now.Add(-Life)) {
			t.Errorf("%s: wrong age", request)
		}
	}
	nonce := NewRequest(ActionPlan, now).Nonce
	for _, text := range []string{"", "x", nonce + " ", nonce + " apply", nonce + " diff", nonce + " diff 1..", " " + nonce, nonce + "\n", strings.ToUpper(nonce), nonce + "/../x"} {
		if request, err := ParseRequest(text); err == nil {
			t.Errorf("%q is read as %+v", text, request)
		}
	}
}

func TestLargeContentIsRefused(t *testing.T) {
	owner := Owner{Reconciler: "shop.example.com", Namespace: "market", Name: "corner", UID: "1"}
	secret := owner.Secret(NewRequest(ActionEdited, time.Now()))
	check.Fails(t, SetEdited(secret, map[string]any{"text": strings.Repeat("x", MaxEdited)}), "at most 524288")
	secret.Data[entryEdited] = make([]byte, MaxEdited+1)
	check.Fails(t, check.ErrorOf(EditedIn(secret)), "at most 524288")
	random, source := make([]byte, 2*maxAnswer), rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte('a' + source.IntN(26))
	}
	text, _ := json.Marshal(string(random))
	check.NoError(t, SetAnswer(secret, Answer{Request: "x", Plan: text}))
	answer, err := AnswerIn(secret)
	if err != nil || answer.Plan != nil || !strings.Contains(answer.Error, "use the command plan of the operator's own program") || answer.Request != "x" {
		t.Errorf("got %+v, error %v", answer, err)
	}
	if len(secret.Data[entryEdited]) > 0 {
		t.Error("the edited component is still there")
	}
}

// shop is a component as an operator has reconciled it.
func shop() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "shop.example.com/v1", "kind": "Shop",
		"metadata": map[string]any{"namespace": "market", "name": "corner", "uid": "1"},
		"status": map[string]any{
			"reconciler": "shop.example.com",
			"inventory":  map[string]any{"operator": map[string]any{"namespace": "shops", "lease": "shops/shop.example.com"}},
		},
	}}
}

func TestAUserLearnsWhyThereIsNoAnswer(t *testing.T) {
	forbid := func(verb, resource string) interceptor.Funcs {
		refuse := func(v string, obj client.Object) error {
			_, isSecret := obj.(*corev1.Secret)
			if v == verb && (resource == "secrets") == isSecret {
				return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, obj.GetName(), nil)
			}
			return nil
		}
		return interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
				if err := refuse("get", obj); err != nil {
					return err
				}
				return c.Get(ctx, key, obj, options...)
			},
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, options ...client.CreateOption) error {
				if err := refuse("create", obj); err != nil {
					return err
				}
				return c.Create(ctx, obj, options...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
				return refuse("patch", obj) // the fake client knows no merge with a uid
			},
		}
	}
	lease := func(renewed time.Duration) func(client.Client) {
		return func(c client.Client) {
			held := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "shops", Name: "shop.example.com"}}
			held.Spec.HolderIdentity, held.Spec.RenewTime = new("pod"), &metav1.MicroTime{Time: time.Now().Add(-renewed)}
			_ = c.Create(context.Background(), held)
		}
	}
	for name, test := range map[string]struct {
		change  func(*Question)
		funcs   interceptor.Funcs
		prepare func(client.Client)
		want    string
		within  time.Duration
	}{
		"it was never reconciled": {change: func(q *Question) { delete(q.Component.Object, "status") }, want: "no operator has reconciled Shop market/corner yet"},
		"an operator without previews": {
			change: func(q *Question) { unstructured.RemoveNestedField(q.Component.Object, "status", "reconciler") },
			want:   "is of a version that answers no questions",
		},
		"no right to ask":          {funcs: forbid("patch", "shops"), want: "it takes the right to patch the component"},
		"no right to read":         {funcs: forbid("get", "secrets"), want: "it takes the right to get secrets in the namespace"},
		"no right to send an edit": {funcs: forbid("create", "secrets"), change: func(q *Question) { q.Edited = shop() }, want: "it takes the right to create secrets in the namespace market"},
		"the namespace is being deleted": {
			funcs: forbid("", ""), want: "the namespace market is being deleted, so no operator can answer in it", within: 10 * time.Second,
			prepare: func(c client.Client) {
				ending := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "market", Finalizers: []string{"example.org/keep"}}}
				_ = c.Create(context.Background(), ending)
				_ = c.Delete(context.Background(), ending)
			},
		},
		"no operator runs":          {funcs: forbid("", ""), want: "no operator named shop.example.com is running: there is no Lease shops/shop.example.com", within: 10 * time.Second},
		"the operator has ended":    {funcs: forbid("", ""), prepare: lease(time.Hour), want: "no operator named shop.example.com is running: Lease shops/shop.example.com was not renewed since", within: 10 * time.Second},
		"the operator does nothing": {funcs: forbid("", ""), prepare: lease(0), want: "no answer within 1m0s from an operator named shop.example.com about Shop market/corner", within: 62 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scheme := runtime.NewScheme()
				check.NoError(t, clientgoscheme.AddToScheme(scheme))
				c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), test.funcs)
				if test.prepare != nil {
					test.prepare(c)
				}
				q := Question{Component: shop(), FieldOwner: "test"}
				if test.change != nil {
					test.change(&q)
				}
				started := time.Now()
				_, err := Ask(t.Context(), c, q)
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				if took := time.Since(started); took > test.within+time.Second {
					t.Errorf("it took %s", took)
				}
				left := &corev1.SecretList{}
				if err := c.List(t.Context(), left); err != nil || len(left.Items) > 0 {
					t.Errorf("%d Secrets are left, error %v", len(left.Items), err)
				}
			})
		})
	}
}
