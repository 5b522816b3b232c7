// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package steering writes the annotations by which users steer a component: reconcile it now, suspend and resume it,
// roll it back. What is written is decided from the component as it was read; the write demands that it is still so.
package steering
