// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
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
