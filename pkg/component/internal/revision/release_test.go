// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/test/check"
)

// taken is a component that has taken over revision 2 of a release.
type taken struct {
	identity.Component
	status v1alpha1.ComponentStatus
}

func (*taken) GetNamespace() string                   { return "market" }
func (*taken) GetName() string                        { return "corner" }
func (c *taken) GetStatus() *v1alpha1.ComponentStatus { return &c.status }

// Without the last record, another attempt would not find the others.
func TestTheLastRecordOfAReleaseIsDeletedLast(t *testing.T) {
	var records []client.Object
	for revision, status := range map[int]string{1: "superseded", 2: "deployed"} {
		text := fmt.Sprintf(`{"name":"corner","namespace":"market","version":%d,"info":{"status":%q}}`, revision, status)
		records = append(records, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "market", Name: fmt.Sprintf("sh.helm.release.v1.corner.v%d", revision),
				Labels: map[string]string{"owner": "helm", "name": "corner", "version": fmt.Sprint(revision)},
			},
			Type: "helm.sh/release.v1", Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString([]byte(text)))},
		})
	}
	failing := true
	c := interceptor.NewClient(fake.NewClientBuilder().WithObjects(records...).Build(), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if failing && object.GetName() == "sh.helm.release.v1.corner.v1" {
				return errors.New("the connection was refused")
			}
			return c.Delete(ctx, object, options...)
		},
	})
	source := &Source{Self: &identity.Operator{AdoptHelmOperator: true}, Renderer: &rendering.Renderer{}}
	component := &taken{status: v1alpha1.ComponentStatus{
		AppliedGeneration: 1, AdoptedRelease: &v1alpha1.AdoptedRelease{Namespace: "market", Name: "corner", Revision: 2},
	}}
	left := func() int {
		list := &corev1.SecretList{}
		check.NoError(t, c.List(t.Context(), list))
		return len(list.Items)
	}
	if err := source.EraseRelease(t.Context(), component, c); err == nil || left() != 2 {
		t.Errorf("%v, and %d records are left", err, left())
	}
	failing = false
	if err := source.EraseRelease(t.Context(), component, c); err != nil || left() != 0 {
		t.Errorf("%v, and %d records are left", err, left())
	}
}
