// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// CRDPolicy says what becomes of the objects in the folders crds of a chart.
type CRDPolicy string

const (
	// CRDsApply creates and upgrades them like all other objects. It is the
	// default.
	CRDsApply CRDPolicy = "apply"
	// CRDsOnce creates them where they are missing and then leaves them alone,
	// as Helm does.
	CRDsOnce CRDPolicy = "once"
	// CRDsNever leaves them out.
	CRDsNever CRDPolicy = "never"
)

// Options are the options of New; the zero value is a good choice.
type Options struct {
	// DisableLookup makes the function lookup find nothing, as it does in
	// helm template.
	DisableLookup bool
	// CRDs says what becomes of the folders crds, by default CRDsApply.
	CRDs CRDPolicy
	// KubeVersion is the version of Kubernetes to render for, such as "1.33.1".
	// By default it is that of the target.
	KubeVersion string
	// APIVersions are the API versions to render for, such as "apps/v1" and
	// "apps/v1/Deployment". By default they are those that the target serves.
	APIVersions []string
	// Timeout limits one rendering, by default 2 minutes; the deadline of the
	// context counts as well. A template without end exceeds Limits.WorkBytes before.
	Timeout time.Duration
	// Limits are the limits of one rendering.
	Limits manifests.TemplateLimits
}

const defaultTimeout = 2 * time.Minute

// complete fills in the defaults, and checks the rest.
func (o Options) complete() (Options, error) {
	o.CRDs = cmp.Or(o.CRDs, CRDsApply)
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	var errs []error
	switch o.CRDs {
	case CRDsApply, CRDsOnce, CRDsNever:
	default:
		errs = append(errs, fmt.Errorf("option CRDs: %q is not one of %s, %s, %s", o.CRDs, CRDsApply, CRDsOnce, CRDsNever))
	}
	if o.KubeVersion != "" {
		if _, err := common.ParseKubeVersion(o.KubeVersion); err != nil {
			errs = append(errs, fmt.Errorf("option KubeVersion: %w", err))
		}
	}
	return o, errors.Join(errs...)
}
