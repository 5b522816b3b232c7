// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
)

// A component is pinned to an earlier revision by the annotation rollback-to, or because a later
// revision failed and the component is rolled back then. The manifests of the earlier revision
// are applied as a revision of their own, with a number of its own, so that their hooks run once.

// pinOf returns the revision that the component is pinned to. The digests are those of what the
// spec leads to: a component is rolled back until they change. It is an error if a rollback cannot start:
// no revision is counted for it then.
func (s *Source) pinOf(ctx context.Context, obj identity.Component, spec Digests) (Pin, error) {
	status, annotation := obj.GetStatus(), s.Self.Annotation(vocabulary.AnnotationRollbackTo)
	if value := obj.GetAnnotations()[annotation]; value != "" {
		to, err := strconv.ParseInt(value, 10, 64)
		if err != nil || to < 1 {
			return Pin{}, &verdict.InvalidError{Err: s.Self.About(obj, fmt.Errorf(`annotation %s: %q must be the number of an earlier revision, such as "3"`, annotation, sentence.Shorten(value, 64)))}
		}
		asked := Pin{To: to}
		if err := s.checkKept(ctx, obj, asked); err != nil {
			return Pin{}, err
		}
		status.Rollback = nil
		return asked, nil
	}
	if r := status.Rollback; r != nil && (r.Digest != spec.Revision || r.To < 1 || r.To >= r.From || s.HistoryLimit == 0) {
		status.Rollback = nil
	}
	if status.Rollback == nil {
		return Pin{}, nil
	}
	failed := Pin{To: status.Rollback.To, Failed: status.Rollback.From}
	return failed, s.checkKept(ctx, obj, failed)
}

// checkKept returns an error if the rollback is to start and the manifests of the revision are not kept.
func (s *Source) checkKept(ctx context.Context, obj identity.Component, p Pin) error {
	status := Of(obj)
	if current := status.Current(); current != nil && current.RollbackTo == p.To {
		return nil
	}
	if s.HistoryLimit == 0 {
		return s.notKept(obj, p, nil)
	}
	missing := &rendering.MissingRevisionError{Revision: p.To}
	for _, entry := range status.History {
		switch {
		case entry.Digest == "":
		case entry.Revision == p.To:
			_, err := s.StoredRevision(ctx, obj, p.To, entry.Digest)
			return s.notKept(obj, p, err)
		default:
			missing.Kept = append(missing.Kept, entry.Revision)
		}
	}
	return s.notKept(obj, p, missing)
}

// notKept returns the error of a component whose rollback cannot be done for this reason. If the operator had started it, the
// failed revision is applied again, and is not rolled back.
func (s *Source) notKept(obj identity.Component, p Pin, err error) error {
	_, missing := errors.AsType[*rendering.MissingRevisionError](err)
	switch {
	case s.HistoryLimit == 0: // the option may have changed
		return &verdict.InvalidError{Err: s.Self.About(obj, fmt.Errorf("it cannot be rolled back to revision %d, because the operator keeps no manifests (option RevisionHistoryLimit is 0)", p.To))}
	case err == nil:
		return nil
	case missing && p.Failed != 0:
		obj.GetStatus().Rollback = nil
		if entry := Of(obj).Entry(p.To); entry != nil {
			entry.Digest = ""
		}
		return s.Self.About(obj, fmt.Errorf("it cannot be rolled back after the failure of revision %d: %w", p.Failed, err))
	case missing:
		return &verdict.InvalidError{Err: s.Self.About(obj, err)}
	}
	return s.Self.About(obj, err)
}
