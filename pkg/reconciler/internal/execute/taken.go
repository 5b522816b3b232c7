// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// takenWords are the words in which validations, quotas and webhooks say that
// another object has what this one asks for: "provided port is already
// allocated", "exceeded quota", "host and path are already defined".
var takenWords = []string{"already", "exceeded quota"}

// IsTaken tells whether the server or a webhook refused to create the object,
// because something that it asks for, such as a port, is taken.
func IsTaken(err error) bool {
	e, ok := errors.AsType[*Error](err)
	creates := ok && (e.Verb == plan.VerbCreate || e.Verb == plan.VerbDryRun)
	if !creates || e.Class != Invalid && e.Class != Denied && e.Class != Forbidden {
		return false
	}
	status, answered := errors.AsType[*apierrors.StatusError](e.Err)
	if !answered {
		return false
	}
	message := strings.ToLower(status.ErrStatus.Message)
	return slices.ContainsFunc(takenWords, func(words string) bool { return strings.Contains(message, words) })
}
