// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// capabilitiesFor returns what the target can do. Without a target they are those
// that helm template assumes.
func capabilitiesFor(ctx context.Context, options Options) (*common.Capabilities, error) {
	capabilities := common.DefaultCapabilities.Copy()
	target, err := manifests.TargetFromContext(ctx)
	if err == nil && (options.KubeVersion == "" || options.APIVersions == nil) {
		served, err := target.Types().Served(ctx)
		if err != nil {
			return nil, fmt.Errorf("capabilities of the target: %w", err)
		}
		version, err := common.ParseKubeVersion(served.Version)
		if err != nil {
			return nil, fmt.Errorf("version %q of the target: %w", served.Version, err)
		}
		capabilities.KubeVersion, capabilities.APIVersions = *version, served.APIVersions
	}
	if options.KubeVersion != "" {
		version, err := common.ParseKubeVersion(options.KubeVersion)
		if err != nil {
			return nil, err
		}
		capabilities.KubeVersion = *version
	}
	if options.APIVersions != nil {
		capabilities.APIVersions = options.APIVersions
	}
	// Templates get the list itself.
	capabilities.APIVersions = slices.Clone(capabilities.APIVersions)
	return capabilities, nil
}
