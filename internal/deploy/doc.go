// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package deploy installs the Helm chart of an operator without its workloads, so that the operator can run
// outside of the cluster, as its service account and with the rights that the chart gives it.
package deploy
