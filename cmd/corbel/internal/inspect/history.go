// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"strings"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// SourceText names a source: "helm shop 1.2.0 (1.0)". It is empty for nil.
func SourceText(source *v1alpha1.Source) string {
	if source == nil {
		return ""
	}
	text := strings.Join(strings.Fields(source.Generator+" "+source.Chart+" "+source.Version), " ")
	if source.AppVersion != "" {
		text += " (" + source.AppVersion + ")"
	}
	return text
}

// RevisionNote says what is special about a revision of the history.
func (c Component) RevisionNote(revision v1alpha1.RevisionStatus) string {
	var notes []string
	if revision.RollbackTo != 0 {
		notes = append(notes, fmt.Sprintf("rollback to %d", revision.RollbackTo))
	}
	if rollback := c.Status.Rollback; rollback != nil && rollback.From == revision.Revision {
		notes = append(notes, fmt.Sprintf("rolled back to %d: %s", rollback.To, strings.Join(strings.Fields(rollback.Message), " ")))
	}
	if revision.Digest == "" {
		notes = append(notes, "its manifests are not kept")
	}
	return strings.Join(notes, "; ")
}

// Kept returns nil if the manifests of a revision are kept.
func (c Component) Kept(revision int64) error {
	for _, known := range c.Status.History {
		if known.Revision == revision {
			if known.Digest == "" {
				return fmt.Errorf("the manifests of revision %d of %s are not kept", revision, c)
			}
			return nil
		}
	}
	return fmt.Errorf("%s has no revision %d; \"corbel history\" lists them", c, revision)
}
