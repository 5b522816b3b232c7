// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Problem is one mistake in a kubeconfig.
type Problem struct {
	// Reason is the kind of mistake, one of the reasons of api/v1alpha1.
	Reason string
	// Path is the field, such as "users[0].user.exec"; empty if it is the whole.
	Path string
	// Text says what is wrong. It holds no values that could be secret.
	Text string
}

// Error lists all problems of a kubeconfig.
type Error struct {
	Problems []Problem
}

// maxSentences bounds the message; a mistake can repeat itself a million times.
const maxSentences = 20

// Error has one sentence for each problem.
func (e *Error) Error() string {
	var sentences []string
	for i, p := range e.Problems {
		if i == maxSentences {
			sentences = append(sentences, fmt.Sprintf("and %d more", len(e.Problems)-i))
			break
		}
		if p.Path != "" {
			p.Text = p.Path + ": " + p.Text
		}
		sentences = append(sentences, p.Text)
	}
	return "kubeconfig: " + strings.Join(sentences, "; ")
}

// severity orders reasons: what was refused for safety comes before what is
// merely wrong.
var severity = []string{
	v1alpha1.ReasonKubeconfigForbiddenField,
	v1alpha1.ReasonKubeconfigInsecure,
}

// Reason is the gravest reason among the problems.
func (e *Error) Reason() string {
	for _, reason := range severity {
		if slices.ContainsFunc(e.Problems, func(p Problem) bool { return p.Reason == reason }) {
			return reason
		}
	}
	if len(e.Problems) == 0 {
		return v1alpha1.ReasonKubeconfigInvalid
	}
	return e.Problems[0].Reason
}
