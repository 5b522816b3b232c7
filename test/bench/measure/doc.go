// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package measure takes subjects through the life of one component on a real API
// server and reports what it took them. The subjects take turns, each has a process of
// its own, and what is done is seen from outside, by a watch.
package measure
