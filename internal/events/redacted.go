// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/redact"
)

// Redacted returns a recorder that keeps out of its events the secrets of the
// objects that they are about.
func Redacted(inner Recorder, secretsOf func(client.ObjectKey) *redact.Secrets) Recorder {
	return redacted{inner, secretsOf}
}

type redacted struct {
	inner     Recorder
	secretsOf func(client.ObjectKey) *redact.Secrets
}

// Eventf implements Recorder.
func (r redacted) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	var secrets *redact.Secrets
	if object, ok := regarding.(client.Object); ok {
		secrets = r.secretsOf(client.ObjectKeyFromObject(object))
	}
	r.inner.Eventf(regarding, related, eventType, reason, action, "%s", secrets.Text(fmt.Sprintf(note, args...)))
}
