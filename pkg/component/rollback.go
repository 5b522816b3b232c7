// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
)

// rollBackFailed records that the revision failed and, if the component is to be rolled back, that it
// is. It reports whether it is. The status is written before the earlier revision is applied. A
// revision that was ready before, a rollback, and one that the next version is to replace are not rolled back.
func (h *handler) rollBackFailed(obj Component, message string) bool {
	status := revision.Of(obj)
	status.NoteFailed()
	current, last := status.Current(), status.LastReady()
	if current == nil || h.remembered(obj).turn != "" || current.ReadyAt != nil || current.RollbackTo != 0 || last == nil || last.Digest == "" || !h.rollsBack(obj) {
		return false
	}
	status.Rollback = &v1alpha1.Rollback{
		From: current.Revision, To: last.Revision, Digest: status.Processing().Revision, Message: sentence.Shorten(sentence.OneLine(message), verdict.MaxSentence),
	}
	return true
}

// rollsBack reports whether the component is rolled back when a revision fails.
func (h *handler) rollsBack(obj Component) bool {
	if own, ok := configurationOf[RollbackConfiguration](obj); ok {
		if value := own.GetRollbackOnFailure(); value != nil {
			return *value
		}
	}
	return h.settings.rollbackOnFailure
}
