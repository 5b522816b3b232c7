// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Metric describes a metric.
type Metric struct {
	Name, Type, Help string
	Labels           []string
}

// declared are all metrics, in the order of their declaration.
var declared []Metric

// Declared returns the descriptions of all metrics.
func Declared() []Metric { return slices.Clone(declared) }

func register(m Metric, collector prometheus.Collector) {
	declared = append(declared, m)
	metrics.Registry.MustRegister(collector)
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	register(Metric{name, "counter", help, labels}, vec)
	return vec
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	register(Metric{name, "gauge", help, labels}, vec)
	return vec
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	register(Metric{name, "histogram", help, labels}, vec)
	return vec
}

// reconcileBuckets reach from a reconcile that finds nothing to do to a reconcile that writes
// thousands of objects, in seconds.
var reconcileBuckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}

var (
	reconciles = counter("corbel_reconcile_total",
		"Reconciles of components, by result: ready, processing, pending, error, deleting, suspended, gone or conflict.", "controller", "result")
	reconcileSeconds = histogram("corbel_reconcile_duration_seconds",
		"Duration of reconciles of components.", reconcileBuckets, "controller")
	phaseSeconds = histogram("corbel_phase_duration_seconds",
		"Duration of the parts of reconciles: hooks, render, read, plan, record and execute.", reconcileBuckets, "controller", "phase")
	writes = counter("corbel_writes_total",
		"Writes of dependent objects that succeeded, by verb and by the reason of the plan.", "controller", "verb", "reason")
	writeErrors = counter("corbel_write_errors_total",
		"Writes of dependent objects that failed, by verb and by the class of the failure.", "controller", "verb", "class")
	orphans = counter("corbel_orphans_found_total",
		"Objects that bear our label and annotation and are in no inventory.", "controller")
	heldRenders = counter("corbel_renders_held_back_total",
		"Reconciles that kept the last manifests, because they change with every rendering.", "controller")
)

// Phase is a part of a reconcile.
type Phase string

// The parts of a reconcile.
const (
	PhaseHooks   Phase = "hooks"
	PhaseRender  Phase = "render"
	PhaseRead    Phase = "read"
	PhasePlan    Phase = "plan"
	PhaseRecord  Phase = "record"
	PhaseExecute Phase = "execute"
)

// Result is the result of a reconcile.
type Result string

// Results of reconciles.
const (
	ResultReady      Result = "ready"
	ResultProcessing Result = "processing"
	ResultPending    Result = "pending"
	ResultError      Result = "error"
	ResultDeleting   Result = "deleting"
	ResultSuspended  Result = "suspended"
	ResultGone       Result = "gone"
	ResultConflict   Result = "conflict"
)

type contextKey struct{}

// WithController returns a context in which metrics belong to the controller.
func WithController(ctx context.Context, controller string) context.Context {
	return context.WithValue(ctx, contextKey{}, controller)
}

// ControllerOf returns the controller of the context, or else the given name.
func ControllerOf(ctx context.Context, otherwise string) string {
	if controller, ok := ctx.Value(contextKey{}).(string); ok {
		return controller
	}
	return otherwise
}

// Reconciled counts a reconcile.
func Reconciled(controller string, result Result, took time.Duration) {
	reconciles.WithLabelValues(controller, string(result)).Inc()
	reconcileSeconds.WithLabelValues(controller).Observe(took.Seconds())
}

// ObservePhase records the duration of a part of a reconcile.
func ObservePhase(controller string, phase Phase, took time.Duration) {
	phaseSeconds.WithLabelValues(controller, string(phase)).Observe(took.Seconds())
}

// Wrote counts a write that succeeded. Verb and reason are the plan's.
func Wrote(controller, verb, reason string) {
	writes.WithLabelValues(controller, verb, reason).Inc()
}

// WriteFailed counts a write that failed.
func WriteFailed(controller, verb, class string) {
	writeErrors.WithLabelValues(controller, verb, class).Inc()
}

// OrphansFound counts objects that bear our label and annotation and are in no inventory.
func OrphansFound(controller string, n int) {
	if n > 0 {
		orphans.WithLabelValues(controller).Add(float64(n))
	}
}

// RenderHeldBack counts a reconcile that kept the last manifests.
func RenderHeldBack(controller string) { heldRenders.WithLabelValues(controller).Inc() }

var requests = counter("corbel_requests_total",
	"Requests to API servers, by verb and class of the answer: 2xx, 3xx, 4xx, 5xx, or error if there was none.", "verb", "code")

// CountRequests returns a transport that counts the requests that go through it.
// Requests that the client repeats count again.
func CountRequests(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return &counting{next}
}

type counting struct{ next http.RoundTripper }

func (c *counting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	requests.WithLabelValues(verbOf(request), codeOf(response, err)).Inc()
	return response, err
}

// CloseIdleConnections lets http.Client find the transport below.
func (c *counting) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(c.next) }

// WrappedRoundTripper returns the transport below.
func (c *counting) WrappedRoundTripper() http.RoundTripper { return c.next }

func codeOf(response *http.Response, err error) string {
	if err != nil || response == nil {
		return "error"
	}
	return strconv.Itoa(response.StatusCode/100) + "xx"
}

// verbOf returns the verb as the API server names it. It does not distinguish get from list.
func verbOf(request *http.Request) string {
	switch request.Method {
	case http.MethodGet, "":
		if watch := request.URL.Query().Get("watch"); watch == "true" || watch == "1" {
			return "watch"
		}
		return "read"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		if request.Header.Get("Content-Type") == "application/apply-patch+yaml" {
			return "apply"
		}
		return "patch"
	case http.MethodDelete:
		return "delete"
	default:
		return "other"
	}
}
