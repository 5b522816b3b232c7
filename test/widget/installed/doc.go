// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package installed puts the widget on a real API server for one test, with its
// definition as it is or outdated in some way.
package installed
