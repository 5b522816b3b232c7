// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/redact"
)

func TestAnEventIsWithoutTheSecretsOfItsObject(t *testing.T) {
	const password = "correct-horse-battery"
	of := map[client.ObjectKey]*redact.Secrets{{Namespace: "shop", Name: "a"}: redact.New()}
	of[client.ObjectKey{Namespace: "shop", Name: "a"}].Add(password)
	var recorded notebook
	recorder := Redacted(&recorded, func(key client.ObjectKey) *redact.Secrets { return of[key] })
	for _, name := range []string{"a", "b"} {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		recorder.Eventf(object, nil, corev1.EventTypeWarning, "Failed", "Apply", "the server refused %q", password)
	}
	want := []string{
		`Warning|Failed|Apply|the server refused "` + redact.Placeholder + `"`,
		`Warning|Failed|Apply|the server refused "` + password + `"`, // no secret of that object
	}
	if diff := cmp.Diff(want, recorded.lines); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
