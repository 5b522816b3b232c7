// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet rolls out another generator, such as the next version of a chart: each component starts the new revision in its turn. The
// turn follows from the histories of all components, so the next leader decides the same.
package fleet
