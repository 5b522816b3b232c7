// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestBehaviourReportsBadAnnotations(t *testing.T) {
	for _, test := range []struct{ name, value, want string }{
		{"ready-after", "soon", "invalid duration"},
		{"ready-after", "-1s", "negative"},
		{"never-ready", "perhaps", "invalid syntax"},
		{"waiting", "", "the reason is empty"},
		{"exit-code", "256", "not between 0 and 255"},
		{"exit-code", "one", "invalid syntax"},
		{"run-for", "1", "missing unit"},
		{"terminate-after", "x", "invalid duration"},
		{"unheard-of", "x", "unknown"},
	} {
		t.Run(test.name+"="+test.value, func(t *testing.T) {
			b := behaviourOf(testPod(corev1.RestartPolicyAlways, "web:1", test.name, test.value), testTiming)
			if b.waiting != "InvalidSimulation" || !strings.Contains(b.message, annotationPrefix+test.name) || !strings.Contains(b.message, test.want) {
				t.Errorf("the pod waits with %q: %q, want a message with %q", b.waiting, b.message, test.want)
			}
		})
	}
}

func TestTerminationIsBoundedByTheGracePeriod(t *testing.T) {
	pod := testPod(corev1.RestartPolicyAlways, "web:1", "terminate-after", "1m")
	if got := behaviourOf(pod, testTiming).terminate; got != time.Minute {
		t.Errorf("without a grace period, terminating takes %s, want 1m", got)
	}
	pod.DeletionGracePeriodSeconds = new(int64(5))
	if got := behaviourOf(pod, testTiming).terminate; got != 5*time.Second {
		t.Errorf("with a grace period of 5s, terminating takes %s", got)
	}
}

func TestNewProblems(t *testing.T) {
	status := func(image string) corev1.PodStatus {
		s, _ := nextStatus(testPod(corev1.RestartPolicyAlways, image), testTiming, testBound, testBound.Add(time.Second), testIPs)
		return s
	}
	if got := newProblems(status("web:1"), status("web:broken")); len(got) != 1 || !strings.Contains(got[0], "ImagePullBackOff") {
		t.Errorf("an image that broke gives problems %q", got)
	}
	if got := newProblems(status("web:broken"), status("web:broken")); len(got) != 0 {
		t.Errorf("a problem that is known is reported again: %q", got)
	}
}

func TestPool(t *testing.T) {
	p := newPool(netip.MustParsePrefix("10.0.0.0/30"))
	p.reserve("10.0.0.2")
	p.reserve("192.0.2.1") // of no concern
	got := []string{p.allocate(), p.allocate(), p.allocate()}
	if want := "10.0.0.1 10.0.0.3 "; strings.Join(got, " ") != want {
		t.Errorf("addresses %q, want %q: each once, and none when there is none", got, want)
	}
	p.free("10.0.0.2")
	p.free("")
	if got := p.allocate(); got != "10.0.0.2" {
		t.Errorf("an address that was given back is not given again, but %q", got)
	}
}
