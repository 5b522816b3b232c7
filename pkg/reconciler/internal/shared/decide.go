// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Mark is the value of the annotation: the origin of a definition.
type Mark struct {
	// Hash identifies the content.
	Hash string
	// Version is the version of the chart; empty if the definition comes from no chart.
	Version string
}

// String returns the value of the annotation: the hash, and the version after a space.
func (m Mark) String() string { return strings.TrimSpace(m.Hash + " " + m.Version) }

// ParseMark reads the value of the annotation; anything else is a hash that no content has.
func ParseMark(value string) Mark {
	hash, version, _ := strings.Cut(value, " ")
	return Mark{Hash: hash, Version: version}
}

// Input is the input of a decision.
type Input struct {
	// Live is the definition as it was observed, with the mark that it has.
	Live plan.Observation
	// Want is the mark of the generator of this process.
	Want Mark
	// Once: the definition is created and never changed.
	Once bool
	// ReadOnly: this process does not have the content.
	ReadOnly bool
	// Served: the cluster serves the type.
	Served bool
	// Written: this process has written this content before.
	Written bool
	// Drifted: the definition differs from its manifest, although its mark has the manifest's
	// digest.
	Drifted bool
}

// Decision is the decision about a definition.
type Decision struct {
	// Verb is VerbCreate or VerbReplace; empty if nothing is written.
	Verb   plan.Verb
	Reason plan.Reason
	// Note explains why the definition is used as it is although the generator has another one;
	// empty if there is no reason to.
	Note string
	// Used: the definition could not be read, and is served, so it counts as ready.
	Used bool
	// Missing: the definition does not exist, and this process may not create it.
	Missing bool
}

// Decide decides about a definition. It is a pure function.
func Decide(in Input) Decision {
	live := in.Live
	switch live.Existence {
	case plan.Absent, plan.NotFetched:
		if in.ReadOnly {
			return Decision{Missing: true}
		}
		return Decision{Verb: plan.VerbCreate, Reason: plan.ReasonMissing}
	case plan.Unknown:
		if live.Forbidden && in.Served {
			return Decision{Used: true, Note: "is used as it is: it " + live.Message}
		}
		return Decision{}
	}
	if !live.DeletionTimestamp.IsZero() {
		return Decision{} // it is created again when it is gone
	}
	if owner := otherOwner(live.Ownership); owner != "" {
		return Decision{Note: "is used as it is: it belongs to " + owner}
	}
	if in.Once || in.ReadOnly {
		return Decision{}
	}
	if live.Shared == "" {
		return Decision{Verb: plan.VerbReplace, Reason: plan.ReasonAdopted}
	}
	has := ParseMark(live.Shared)
	switch order := compare(has.Version, in.Want.Version); {
	case order > 0:
		return Decision{Note: fmt.Sprintf("is used as it is: it is that of version %s, and this operator has version %s", has.Version, in.Want.Version)}
	case order < 0:
		return Decision{Verb: plan.VerbReplace, Reason: plan.ReasonManifestChanged}
	case has.Hash != in.Want.Hash && in.Written:
		return Decision{Note: "is used as it is: another process replaces what this one has written, with another content of the same version"}
	case has.Hash != in.Want.Hash:
		return Decision{Verb: plan.VerbReplace, Reason: plan.ReasonManifestChanged}
	case in.Drifted:
		return Decision{Verb: plan.VerbReplace, Reason: plan.ReasonDrifted}
	}
	return Decision{}
}

// otherOwner names the owner of a definition that is not for this reconciler to write. A component of this reconciler is none: before
// definitions were shared, one of them had it.
func otherOwner(ownership plan.Ownership) string {
	if len(ownership.OtherOwners) > 0 {
		return strings.Join(ownership.OtherOwners, " and ")
	}
	if controller := ownership.Controller; controller.UID != "" {
		return "its controller " + controller.Kind + " " + controller.Name
	}
	return ""
}

// compare compares two versions. A text that is no semantic version is lower than a version, and
// equal to any other such text.
func compare(a, b string) int {
	first, second := parse(a), parse(b)
	switch {
	case first == nil && second == nil:
		return 0
	case first == nil:
		return -1
	case second == nil:
		return 1
	case first.LessThan(second):
		return -1
	case second.LessThan(first):
		return 1
	}
	return 0
}

func parse(text string) *version.Version {
	parsed, err := version.ParseSemantic(text)
	if err != nil {
		return nil
	}
	return parsed
}
