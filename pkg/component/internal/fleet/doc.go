// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet rolls out another generator, such as the next version of a chart, to all components of an operator. Another
// generator is a new revision of every component. In a roll-out, a component starts the revision when it is its turn, and keeps
// its version until then. The decision follows from the histories of all components, so the next leader decides the same.
package fleet
