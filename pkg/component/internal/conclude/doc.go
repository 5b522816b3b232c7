// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package conclude ends the reconciles of components: it writes the outcome of the engine into the status, the events and the log.
package conclude
