// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package ops tests what corbel init writes into the folder ops of a project with the programs that
// read it: the health check of Argo CD with an interpreter of Lua, the alerts and the dashboard with the query
// engine of Prometheus. It is a module of its own, because nothing else needs these.
package ops
