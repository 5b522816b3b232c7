// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"

	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// releaseFor describes the deployment as a release of Helm. Its revision is that
// of the component; all are installations until one was applied and ready.
func releaseFor(ctx context.Context, namespace, name string) common.ReleaseOptions {
	revision := int64(1)
	if r, err := manifests.ComponentRevisionFromContext(ctx); err == nil {
		revision = max(r, 1)
	}
	installation := manifests.IsComponentInstallation(ctx)
	return common.ReleaseOptions{
		Name:      name,
		Namespace: namespace,
		Revision:  int(revision),
		IsInstall: installation,
		IsUpgrade: !installation,
	}
}
