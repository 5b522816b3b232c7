// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"time"

	"github.com/corbel-run/corbel/pkg/types"
)

// Durations are bounded by the schema in their length and in their numbers, so
// that no accepted value overflows. What was stored before the schema was there
// is a mistake that the component says itself.

// RequeueSpec implements RequeueConfiguration.
//
// +kubebuilder:object:generate=true
type RequeueSpec struct {
	// RequeueInterval is how often the component is reconciled although nothing changed; 10m by default.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]{1,5}(\\.[0-9]{1,9})?(ms|s|m|h))+$"
	// +kubebuilder:validation:MaxLength=32
	RequeueInterval *types.Duration `json:"requeueInterval,omitempty"`
}

// GetRequeueInterval returns the interval, or 0 if there is none.
func (s *RequeueSpec) GetRequeueInterval() time.Duration {
	if s == nil {
		return 0
	}
	return durationOf(s.RequeueInterval)
}

// RetrySpec implements RetryConfiguration.
//
// +kubebuilder:object:generate=true
type RetrySpec struct {
	// RetryInterval is when the component is reconciled again after it asked for a retry; the requeue interval by default.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]{1,5}(\\.[0-9]{1,9})?(ms|s|m|h))+$"
	// +kubebuilder:validation:MaxLength=32
	RetryInterval *types.Duration `json:"retryInterval,omitempty"`
}

// GetRetryInterval returns the interval, or 0 if there is none.
func (s *RetrySpec) GetRetryInterval() time.Duration {
	if s == nil {
		return 0
	}
	return durationOf(s.RetryInterval)
}

// TimeoutSpec implements TimeoutConfiguration.
//
// +kubebuilder:object:generate=true
type TimeoutSpec struct {
	// Timeout is how long the dependent objects may take to become ready; the requeue interval by default.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]{1,5}(\\.[0-9]{1,9})?(ms|s|m|h))+$"
	// +kubebuilder:validation:MaxLength=32
	Timeout *types.Duration `json:"timeout,omitempty"`
}

// GetTimeout returns the timeout, or 0 if there is none.
func (s *TimeoutSpec) GetTimeout() time.Duration {
	if s == nil {
		return 0
	}
	return durationOf(s.Timeout)
}

// ReapplySpec implements ReapplyConfiguration.
//
// +kubebuilder:object:generate=true
type ReapplySpec struct {
	// ReapplyInterval is how often dependent objects are written although nothing changed; never by default.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]{1,5}(\\.[0-9]{1,9})?(ms|s|m|h))+$"
	// +kubebuilder:validation:MaxLength=32
	ReapplyInterval *types.Duration `json:"reapplyInterval,omitempty"`
}

// GetReapplyInterval returns the interval, or 0 if there is none.
func (s *ReapplySpec) GetReapplyInterval() time.Duration {
	if s == nil {
		return 0
	}
	return durationOf(s.ReapplyInterval)
}

func durationOf(d *types.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}
