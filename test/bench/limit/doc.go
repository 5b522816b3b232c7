// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package limit is the least that has to be sent, as fast as it can be sent: a bare
// client with many workers that writes what an operator would write, and knows
// beforehand what that is. It decides, records and watches nothing.
package limit
