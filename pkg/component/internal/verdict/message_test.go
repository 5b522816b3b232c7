// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"strings"
	"testing"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// waitFor makes the wait of an engine; text is "group/Kind namespace/name".
func waitFor(text, reason, message string) reconciler.Wait {
	var wait reconciler.Wait
	group, rest, _ := strings.Cut(text, "/")
	kind, name, _ := strings.Cut(rest, " ")
	wait.Key.Group, wait.Key.Kind, wait.Key.Name = group, kind, name
	if namespace, name, ok := strings.Cut(name, "/"); ok {
		wait.Key.Namespace, wait.Key.Name = namespace, name
	}
	wait.Message = message
	setReason(&wait.Reason, reason)
	return wait
}

// setReason exists because the type of a reason cannot be named here.
func setReason[R ~string](reason *R, text string) { *reason = R(text) }

func TestWaitingMessage(t *testing.T) {
	api := waitFor("apps/Deployment shop/api", "NotReady", "1 of 3 replicas ready")
	web := waitFor("apps/Deployment shop/web", "NotReady", "0 of 1 replicas ready")
	job := waitFor("batch/Job shop/migrate", "ObjectFailed", "failed:\n  BackoffLimitExceeded")
	later := waitFor("/ConfigMap shop/later", "Order", "waits for Job shop/migrate")
	gone := waitFor("/Namespace old", "Terminating", "")
	tests := []struct {
		name   string
		waits  []reconciler.Wait
		causes map[string]string
		want   string
	}{
		{"one object", []reconciler.Wait{api}, nil, "Deployment shop/api: 1 of 3 replicas ready"},
		{"with what its pods say", []reconciler.Wait{api}, map[string]string{"apps/Deployment shop/api": "pod api-x: ImagePullBackOff"},
			"Deployment shop/api: 1 of 3 replicas ready; pod api-x: ImagePullBackOff"},
		{"without a message", []reconciler.Wait{gone}, nil, "Namespace old"},
		{"what explains most comes first", []reconciler.Wait{later, gone, web, job}, nil,
			"Job shop/migrate: failed: BackoffLimitExceeded; Deployment shop/web: 0 of 1 replicas ready; Namespace old; and 1 more"},
		{"three objects and how many more", []reconciler.Wait{api, web, job, later, gone, later}, nil,
			"Job shop/migrate: failed: BackoffLimitExceeded; Deployment shop/api: 1 of 3 replicas ready; Deployment shop/web: 0 of 1 replicas ready; and 3 more"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := WaitingMessage(test.waits, test.causes); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	long := waitFor("apps/Deployment shop/"+strings.Repeat("n", 253), "NotReady", strings.Repeat("ä", 5000))
	message := WaitingMessage([]reconciler.Wait{long, long, long, long, long}, nil)
	if len(message) > conditions.MaxMessage || !strings.HasSuffix(message, "; and 2 more") || strings.ToValidUTF8(message, "") != message {
		t.Errorf("%d bytes: %q", len(message), message)
	}
	blocker := reconciler.Blocker{Dependent: "CustomResourceDefinition foos.example.com", Message: strings.Repeat("x", 5000)}
	message = BlockersMessage([]reconciler.Blocker{blocker, blocker, blocker, blocker})
	if len(message) > conditions.MaxMessage || !strings.HasSuffix(message, "; and 1 more") {
		t.Errorf("%d bytes: %q", len(message), message)
	}
}

func TestStillMoving(t *testing.T) {
	conflict := waitFor("/ConfigMap a", "OwnerConflict", "")
	later := waitFor("/ConfigMap b", "Order", "")
	if StillMoving([]reconciler.Wait{conflict, later}) {
		t.Error("a conflict and what waits for it do not move")
	}
	if !StillMoving([]reconciler.Wait{conflict, later, waitFor("/Pod c", "NotReady", "")}) {
		t.Error("a pod that is not ready yet moves")
	}
}
