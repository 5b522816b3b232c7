// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/corbel-run/corbel/internal/backoff"
)

// defaultConcurrency is how many components are reconciled at the same time,
// unless the options or the manager say something else.
const defaultConcurrency = 5

// resolveSetup resolves the options that concern the setup.
func (s *settings) resolveSetup(options ReconcilerOptions) error {
	var errs []error
	s.newClient, s.rateLimiter = options.NewClient, options.RateLimiter
	if options.MaxConcurrentReconciles != nil {
		if s.concurrency = *options.MaxConcurrentReconciles; s.concurrency < 1 {
			errs = append(errs, fmt.Errorf("option MaxConcurrentReconciles %d: must be at least 1", s.concurrency))
		}
	}
	if options.LabelSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(options.LabelSelector)
		if err != nil {
			errs = append(errs, fmt.Errorf("option LabelSelector: %w", err))
		}
		s.selector = selector
	}
	if options.ClusterUID != nil {
		if s.clusterUID = apitypes.UID(*options.ClusterUID); s.clusterUID == "" {
			errs = append(errs, errors.New("option ClusterUID is empty"))
		}
	}
	return errors.Join(errs...)
}

// controllerOptions are what the options leave to the controller.
func (s *settings) controllerOptions(mgr ctrl.Manager) controller.Options {
	options := controller.Options{RateLimiter: s.rateLimiter, MaxConcurrentReconciles: s.concurrency}
	if options.RateLimiter == nil {
		options.RateLimiter = backoff.NewRateLimiter()
	}
	configured := mgr.GetControllerOptions()
	if s.concurrency == 0 && configured.MaxConcurrentReconciles == 0 && len(configured.GroupKindConcurrency) == 0 {
		options.MaxConcurrentReconciles = defaultConcurrency
	}
	return options
}
