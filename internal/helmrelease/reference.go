// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Reference names a revision of a release.
type Reference struct {
	Namespace, Name string
	Revision        int64
}

// ParseReference reads the form of String.
func ParseReference(text string) (Reference, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return Reference{}, fmt.Errorf("%q is not namespace, name and revision of a Helm release, separated by slashes, such as market/corner/7", text)
	}
	r := Reference{Namespace: parts[0], Name: parts[1]}
	if problems := validation.IsDNS1123Label(r.Namespace); len(problems) > 0 {
		return Reference{}, fmt.Errorf("%q: the namespace of the Helm release: %s", text, strings.Join(problems, ", "))
	}
	if problems := validation.IsDNS1123Subdomain(r.Name); len(problems) > 0 {
		return Reference{}, fmt.Errorf("%q: the name of the Helm release: %s", text, strings.Join(problems, ", "))
	}
	var err error
	if r.Revision, err = strconv.ParseInt(parts[2], 10, 32); err != nil || r.Revision < 1 || strconv.FormatInt(r.Revision, 10) != parts[2] {
		return Reference{}, fmt.Errorf("%q: the revision of the Helm release is no number from 1 on", text)
	}
	return r, nil
}

// String returns namespace, name and revision, separated by slashes.
func (r Reference) String() string {
	return r.Namespace + "/" + r.Name + "/" + strconv.FormatInt(r.Revision, 10)
}

// Title is how messages name the release.
func (r Reference) Title() string { return "Helm release " + r.Namespace + "/" + r.Name }

// RecordName is the name of the Secret, or of the ConfigMap, of the revision.
func (r Reference) RecordName() string {
	return "sh.helm.release.v1." + r.Name + ".v" + strconv.FormatInt(r.Revision, 10)
}
