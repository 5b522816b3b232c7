// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/corbel-run/corbel/test/check"
)

func TestEveryMetricIsRegisteredUnderItsName(t *testing.T) {
	for _, m := range Declared() {
		if !strings.HasPrefix(m.Name, "corbel_") || m.Help == "" {
			t.Errorf("metric %q lacks the prefix or the help", m.Name)
		}
		vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
		if _, registered := errors.AsType[prometheus.AlreadyRegisteredError](metrics.Registry.Register(vec)); !registered {
			t.Errorf("%s is not registered as it is declared", m.Name)
		}
	}
}

// expect compares a metric with lines such as `corbel_x{a="b"} 1`.
func expect(t *testing.T, name string, lines ...string) {
	t.Helper()
	families := check.Must(metrics.Registry.Gather())(t)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		var got []string
		for _, series := range family.GetMetric() {
			var labels []string
			for _, label := range series.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}
			value := series.GetGauge().GetValue() + series.GetCounter().GetValue() + float64(series.GetHistogram().GetSampleCount())
			got = append(got, fmt.Sprintf("{%s} %v", strings.Join(labels, ","), value))
		}
		slices.Sort(lines)
		slices.Sort(got)
		check.EqualNamed(t, name, lines, got)
		return
	}
	t.Errorf("there is no metric %s", name)
}

func TestARemovedComponentIsSubtracted(t *testing.T) {
	components.Reset()
	dependents.Reset()
	p := NewPopulation[string]("widgets")
	p.Set("a", Component{State: "Processing", Reason: "Processing", Dependents: map[string]int{"Applied": 3}})
	p.Set("b", Component{State: "Ready", Reason: "Ready", Dependents: map[string]int{"Applied": 2, "Completed": 1}})
	p.Set("a", Component{State: "Ready", Reason: "Ready", Dependents: map[string]int{"Applied": 5}})
	expect(t, "corbel_components", `{controller="widgets",reason="Processing",state="Processing"} 0`, `{controller="widgets",reason="Ready",state="Ready"} 2`)
	expect(t, "corbel_dependents", `{controller="widgets",phase="Applied"} 7`, `{controller="widgets",phase="Completed"} 1`)
	p.Remove("a")
	p.Remove("a")
	p.Remove("never added")
	expect(t, "corbel_components", `{controller="widgets",reason="Processing",state="Processing"} 0`, `{controller="widgets",reason="Ready",state="Ready"} 1`)
	expect(t, "corbel_dependents", `{controller="widgets",phase="Applied"} 2`, `{controller="widgets",phase="Completed"} 1`)
	p.Remove("b")
	expect(t, "corbel_dependents", `{controller="widgets",phase="Applied"} 0`, `{controller="widgets",phase="Completed"} 0`)
}

func TestReasonsAreBounded(t *testing.T) {
	reasons := reasonSet{known: map[string]bool{}}
	for _, reason := range []string{"", "shop-api", "my reason", "X", "Reason1", strings.Repeat("A", 65)} {
		check.SameNamed(t, reason, other, reasons.label(reason))
	}
	for i := range maxReasons {
		reason := "Reason" + strings.Repeat("A", i%26) + string(rune('A'+i/26))
		if got := reasons.label(reason); got != reason {
			t.Fatalf("reason %d became %q", i, got)
		}
	}
	check.Same(t, other, reasons.label("OneMore"))
}

// answering is a server.
type answering struct {
	code int
	err  error
}

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.code, Body: http.NoBody}, nil
}

func TestRequestsAreCounted(t *testing.T) {
	requests.Reset()
	send := func(method, address, contentType string, server answering) {
		t.Helper()
		request := check.Must(http.NewRequestWithContext(t.Context(), method, address, nil))(t)
		request.Header.Set("Content-Type", contentType)
		if response, err := CountRequests(server).RoundTrip(request); err == nil {
			_ = response.Body.Close()
		} else if !errors.Is(err, server.err) {
			t.Error(err)
		}
	}
	const address = "https://host/api/v1/namespaces/shop/secrets/credentials"
	send("GET", address, "", answering{code: 200})
	send("GET", address+"?watch=true", "", answering{code: 200})
	send("GET", address, "", answering{code: 404})
	send("POST", address, "", answering{code: 201})
	send("PUT", address, "", answering{code: 503})
	send("PATCH", address, "application/apply-patch+yaml", answering{code: 200})
	send("PATCH", address, "application/merge-patch+json", answering{code: 200})
	send("DELETE", address, "", answering{err: errors.New("refused")})
	send("BREW", address, "", answering{code: 302})
	expect(t, "corbel_requests_total",
		`{code="2xx",verb="apply"} 1`, `{code="2xx",verb="create"} 1`, `{code="error",verb="delete"} 1`, `{code="3xx",verb="other"} 1`,
		`{code="2xx",verb="patch"} 1`, `{code="2xx",verb="read"} 1`, `{code="4xx",verb="read"} 1`, `{code="5xx",verb="update"} 1`, `{code="2xx",verb="watch"} 1`)
}

func TestReconcilesAreCounted(t *testing.T) {
	ctx := WithController(t.Context(), "widgets")
	check.SameNamed(t, "controller", "widgets", ControllerOf(ctx, "x"))
	check.SameNamed(t, "controller", "engine", ControllerOf(t.Context(), "engine"))
	Reconciled("widgets", ResultReady, time.Second)
	ObservePhase("widgets", PhaseRender, time.Millisecond)
	Wrote("widgets", "create", "missing")
	WriteFailed("widgets", "create", "Invalid")
	OrphansFound("widgets", 2)
	OrphansFound("widgets", 0)
	RenderHeldBack("widgets")
	expect(t, "corbel_reconcile_total", `{controller="widgets",result="ready"} 1`)
	expect(t, "corbel_reconcile_duration_seconds", `{controller="widgets"} 1`)
	expect(t, "corbel_phase_duration_seconds", `{controller="widgets",phase="render"} 1`)
	expect(t, "corbel_writes_total", `{controller="widgets",reason="missing",verb="create"} 1`)
	expect(t, "corbel_write_errors_total", `{class="Invalid",controller="widgets",verb="create"} 1`)
	expect(t, "corbel_orphans_found_total", `{controller="widgets"} 2`)
	expect(t, "corbel_renders_held_back_total", `{controller="widgets"} 1`)
}

func TestTheMetricsAreWellFormed(t *testing.T) {
	problems := check.Must(testutil.GatherAndLint(metrics.Registry))(t)
	for _, problem := range problems {
		if strings.HasPrefix(problem.Metric, "corbel_") {
			t.Errorf("%s: %s", problem.Metric, problem.Text)
		}
	}
}
