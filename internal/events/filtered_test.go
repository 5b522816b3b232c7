// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestAnEventIsWithoutCredentials(t *testing.T) {
	var recorded notebook
	Bounded(&recorded).Eventf(&corev1.ConfigMap{}, nil, corev1.EventTypeWarning, "Failed", "Apply", "cannot read %q", "https://jane:hunter2@host/")
	if diff := cmp.Diff([]string{`Warning|Failed|Apply|cannot read "https://***@host/"`}, recorded.lines); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
