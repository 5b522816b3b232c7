// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/component/internal/fleet"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
)

// Rollout limits how many components are updated at the same time when the operator comes with another chart or
// generator. A waiting component keeps its revision, is repaired, and stays Ready. A change of its spec is applied
// at once, with the new version.
type Rollout struct {
	// MaxUnavailable is how many components may be updating or have failed: a number, or a percentage that is
	// rounded down, at least 1. After so many failures no further component is updated, and the failed ones get the
	// condition RolloutStopped. A component that was not ready before does not count.
	//
	// Default: none; it is required
	MaxUnavailable intstr.IntOrString
	// Canaries selects the components that are updated first. All others wait until they are ready.
	//
	// Default: none
	Canaries *metav1.LabelSelector
	// Pause is how long the next component waits after one became ready.
	//
	// Default: 0
	Pause time.Duration
}

// errNoDigest is a mistake of the setup.
var errNoDigest = errors.New("option Rollout needs a generator that reports a digest, by which another version is noticed: use one of Corbel's generators for files, " +
	"give yours one by manifests.WithDigest, or set the option BuildDigest, for example to the version of the operator")

// resolveRollout resolves the option, and returns all mistakes in it.
func (s *settings) resolveRollout(option *Rollout) error {
	if option == nil {
		return nil
	}
	s.rollout = &fleet.Limits{MaxUnavailable: option.MaxUnavailable, Pause: option.Pause}
	errs := []error{s.rollout.Validate()}
	var err error
	if s.rollout.Canaries, err = metav1.LabelSelectorAsSelector(option.Canaries); err != nil {
		errs = append(errs, fmt.Errorf("option Rollout.Canaries: %w", err))
	}
	if s.historyLimit == 0 {
		errs = append(errs, errors.New("option Rollout needs a RevisionHistoryLimit of at least 1, because a component that waits is kept at the manifests of its revision"))
	}
	return errors.Join(errs...)
}

// newFleet returns the fleet of the components of a handler. Cached is the cache of the manager, and request requests a full reconcile.
func newFleet(s *steps, cached client.Reader, request func(client.ObjectKey)) *fleet.Fleet {
	return fleet.New(fleet.Options{
		Self:             &s.self,
		Generator:        func() string { return revision.GeneratorID(renders.Digest(s.revisions.Renderer.Generator)) },
		Limits:           s.settings.rollout,
		NoHistory:        s.settings.historyLimit == 0,
		ManagementPolicy: s.settings.management,
		IsSuspended:      func(obj identity.Component) bool { return s.isSuspended(obj) },
		Timeout:          func(obj identity.Component) time.Duration { return intervalsOf(obj).Timeout },
		Lister: fleet.Lister{
			Server: s.local, Cache: cached, Namespace: s.settings.onlyNamespace, Selector: s.settings.selector,
			New: func() identity.Component { return s.author.new() },
		},
		Telemetry: s.telemetry,
		Request:   request,
		Now:       s.now,
	})
}
