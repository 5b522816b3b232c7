// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"strings"
	"testing"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/conditions"
)

// waitFor makes the wait of an engine; text is "group/Kind namespace/name".
func waitFor(text, reason, message string) report.Wait {
	var wait report.Wait
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
		waits  []report.Wait
		causes map[string]string
		want   string
	}{
		{"one object", []report.Wait{api}, nil, "Deployment shop/api: 1 of 3 replicas ready"},
		{"with what its pods say", []report.Wait{api}, map[string]string{"apps/Deployment shop/api": "pod api-x: ImagePullBackOff"},
			"Deployment shop/api: 1 of 3 replicas ready; pod api-x: ImagePullBackOff"},
		{"without a message", []report.Wait{gone}, nil, "Namespace old"},
		{"what explains most comes first", []report.Wait{later, gone, web, job}, nil,
			"Job shop/migrate: failed: BackoffLimitExceeded; Deployment shop/web: 0 of 1 replicas ready; Namespace old; and 1 more"},
		{"three objects and how many more", []report.Wait{api, web, job, later, gone, later}, nil,
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
	message := WaitingMessage([]report.Wait{long, long, long, long, long}, nil)
	if len(message) > conditions.MaxMessage || !strings.HasSuffix(message, "; and 2 more") || strings.ToValidUTF8(message, "") != message {
		t.Errorf("%d bytes: %q", len(message), message)
	}
	blocker := report.Blocker{Dependent: "CustomResourceDefinition foos.example.com", Message: strings.Repeat("x", 5000)}
	message = BlockersMessage([]report.Blocker{blocker, blocker, blocker, blocker})
	if len(message) > conditions.MaxMessage || !strings.HasSuffix(message, "; and 1 more") {
		t.Errorf("%d bytes: %q", len(message), message)
	}
}

func TestStillMoving(t *testing.T) {
	conflict := waitFor("/ConfigMap a", "OwnerConflict", "")
	later := waitFor("/ConfigMap b", "Order", "")
	if StillMoving([]report.Wait{conflict, later}) {
		t.Error("a conflict and what waits for it do not move")
	}
	if !StillMoving([]report.Wait{conflict, later, waitFor("/Pod c", "NotReady", "")}) {
		t.Error("a pod that is not ready yet moves")
	}
}

func TestTheSameFailureKeepsItsMessage(t *testing.T) {
	tests := []struct {
		name, before, message string
		same                  bool
	}{
		{"another source port", "read tcp 127.0.0.1:38412->127.0.0.1:6443: connection reset", "read tcp 127.0.0.1:40000->127.0.0.1:6443: connection reset", true},
		{"another server", "read tcp 127.0.0.1:38412->127.0.0.1:6443: connection reset", "read tcp 127.0.0.1:38412->127.0.0.1:7443: connection reset", false},
		{"another request", "denied (request 7d444840-9dc0-11d1-b245-5ffdce74fad2)", "denied (request 4f3c1a20-9dc0-11d1-b245-5ffdce74fad2)", true},
		{"another trace", "denied, trace 4bf92f3577b34da6", "denied, trace 00f067aa0ba902b7", true},
		{"another time", "at 2026-01-02T03:04:05Z: no", "at 2026-01-02T03:05:05.123Z: no", true},
		{"another duration", "gave up after 30.001s", "gave up after 29.8s", true},
		{"other numbers", "exceeded quota: used 3, limited 5", "exceeded quota: used 4, limited 5", false},
		{"another object", "ConfigMap shop/a: denied", "ConfigMap shop/b: denied", false},
		{"words of hexadecimal letters", "facade defaced", "defaced facade", false},
		{"nothing before", "", "failed", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want := test.message
			if test.same {
				want = test.before
			}
			if got := Steady(test.before, test.message, varying); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
