// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity tells to which operator a component belongs, and how messages, the engine and the stores name the component.
package identity
