// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package conditionstest checks the conditions of an object by the rules that
// other tools rely on. It belongs at the end of every test that reconciles
// something: whatever happened, the object's status must make sense.
package conditionstest
