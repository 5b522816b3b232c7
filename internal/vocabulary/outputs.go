// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package vocabulary

import "regexp"

var outputName = regexp.MustCompile(`^[A-Za-z0-9]([-_A-Za-z0-9]{0,38}[A-Za-z0-9])?$`)

// IsOutputName reports whether an output can have a name: a key of a Secret that with a prefix is the name of an annotation.
func IsOutputName(name string) bool { return outputName.MatchString(name) }

// OutputsSecret returns the name of the Secret with the secret outputs of a component.
func OutputsSecret(component string) string { return component + "-outputs" }

// OutputNameRule describes the names of outputs.
const OutputNameRule = "the name of an output has 1 to 40 letters, digits, _ and -, with a letter or a digit at both ends"
