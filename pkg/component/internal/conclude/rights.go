// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conclude

import (
	"context"
	"errors"
	"fmt"
	"strings"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// maxRules is how much of a condition the missing rules get, in bytes. The log has all of them.
const maxRules = 640

// nameMissing adds to an error about missing rights which rights the user of the component
// lacks. The log has them once, until other rights are missing.
func (c *Concluder) nameMissing(ctx context.Context, obj identity.Component, outcome reconciler.Outcome, err error) error {
	missing, known := outcome.Missing, c.Of(obj)
	if !verdict.IsForbidden(err) {
		known.missingRights = ""
		return err
	}
	access, invalid := c.Author.Access(obj)
	if invalid != nil {
		return err
	}
	absent := targets.MissingServiceAccount(ctx, c.Local, access)
	sentences := func(limit int) string {
		rules := missing.String()
		if len(rules) > limit {
			rules = fmt.Sprintf("%d rules, all of which are in the log of the operator: %s", missing.Count(), sentence.Shorten(rules, limit))
		}
		if rules != "" {
			rules = targets.UserOf(access) + " lacks rights: " + rules
		}
		return strings.Trim(absent+"; "+rules, "; ")
	}
	all := sentences(1 << 20)
	if all == "" {
		return err
	}
	if known.missingRights != all {
		known.missingRights = all
		logf.FromContext(ctx).Info("rights are missing", "missing", all)
	}
	return verdict.Worded{Err: err, Message: errors.Join(errors.New(sentences(maxRules)), err).Error()}
}
