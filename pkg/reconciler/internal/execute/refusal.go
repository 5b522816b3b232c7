// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

var (
	// quoted are texts in quotes, the last of which may have been cut off.
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*(?:"|$)`)
	// printed are other forms in which a message may repeat a value, up to its end.
	printed = regexp.MustCompile(`(?:value: [^"]|, got |&|\[\]|map\[|\[[0-9]).*`)
	// missingRight is the answer of an authorizer, which knows no content.
	missingRight = regexp.MustCompile(`^secrets( "[^"]*")? is forbidden: User "[^"]*" cannot `)
	// policyDenial is how the server begins the message of a ValidatingAdmissionPolicy.
	policyDenial = regexp.MustCompile(`ValidatingAdmissionPolicy '[^']*'( with binding '[^']*')? denied request`)
)

// withoutValues is what can be told about a refused Secret: the fields, which name its
// keys, and why they are refused, but no text that may repeat its content.
func withoutValues(key plan.Key, status metav1.Status) string {
	text := "the server refused it" + answer(status)
	who, _, denied := strings.Cut(status.Message, "denied the request")
	if policy := policyDenial.FindString(status.Message); policy != "" {
		return text + ": " + policy
	}
	switch {
	case denied:
		return text + ": " + who + "denied the request"
	case missingRight.MatchString(status.Message):
		return text + ": " + status.Message
	}
	var reasons []string
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			if cause.Field != "" {
				reasons = append(reasons, cause.Field+": "+hideValues(key, cause.Message))
			}
		}
	}
	if len(reasons) == 0 && status.Message != "" {
		reasons = []string{hideValues(key, status.Message)}
	}
	if len(reasons) > 0 {
		text += ": " + strings.Join(reasons, "; ")
	}
	return text
}

// hideValues replaces whatever a message may repeat of an object but its name.
func hideValues(key plan.Key, message string) string {
	message = quoted.ReplaceAllStringFunc(message, func(text string) string {
		if text == `"`+key.Name+`"` {
			return text
		}
		return `"..."`
	})
	return printed.ReplaceAllString(message, "...")
}

// answer is the reason and the code of an answer, as far as it has them.
func answer(status metav1.Status) string {
	switch {
	case status.Reason != "" && status.Code != 0:
		return fmt.Sprintf(" (%s, %d)", status.Reason, status.Code)
	case status.Reason != "":
		return fmt.Sprintf(" (%s)", status.Reason)
	case status.Code != 0:
		return strings.TrimRight(fmt.Sprintf(" (%d %s", status.Code, http.StatusText(int(status.Code))), " ") + ")"
	default:
		return ""
	}
}

// storageFailure says what is wrong if the storage of the cluster did not take an
// object; it is empty if something else is wrong.
func storageFailure(step plan.Step, message string) string {
	switch {
	case strings.Contains(message, "etcdserver: request is too large"),
		strings.Contains(message, "trying to send message larger than max"),
		strings.Contains(message, "Request entity too large"):
		return "the object is too large" + sizeOf(step) +
			": the storage of a cluster takes 1.5 MiB by default; move content of it to other objects (" + message + ")"
	case strings.Contains(message, "etcdserver: mvcc: database space exceeded"):
		return "the storage of the cluster is full; an administrator has to free space in etcd or raise its quota (" + message + ")"
	case strings.Contains(message, "etcdserver: "):
		return "the storage of the cluster did not take it, and it is tried again (" + message + ")"
	default:
		return ""
	}
}

// sizeOf says how large the manifest of a step is, if it has one.
func sizeOf(step plan.Step) string {
	if step.Desired == nil {
		return ""
	}
	manifest := step.Desired.Unpacked().Manifest
	if manifest == nil {
		return ""
	}
	data, err := json.Marshal(manifest.Object)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (its manifest has %d KiB)", len(data)>>10)
}
