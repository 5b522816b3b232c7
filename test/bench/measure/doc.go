// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package measure runs subjects through the life of one component on a real API server
// and reports requests, time, CPU and memory. The subjects run in turn, each has a process
// of its own, and the end of each step is observed from outside, by a watch.
package measure
