// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"strings"
)

// PlanVersion is the form of a Plan. It changes when readers of an older form would
// misunderstand it.
const PlanVersion = "corbel.run/plan/v1"

// Plan is everything that Apply or Delete would do, called again and again until it is done.
// It is ordered, so that plans of the same state are equal.
//
// A plan assumes that objects become ready and that the cluster stays as it is. The server was
// asked about each changed object alone: quotas and ports that several of them need together
// are not counted together.
type Plan struct {
	// Version is PlanVersion.
	Version string `json:"version"`
	// Changes are ordered by batch, stage and object.
	Changes []PlannedChange `json:"changes"`
	// Until are the objects that are waited for between the batches.
	Until []PlannedWait `json:"until,omitempty"`
	// Waiting are the objects that are not settled at the end, and why: nothing in the plan
	// changes that.
	Waiting []Wait `json:"waiting,omitempty"`
	Notes   []Note `json:"notes,omitempty"`
	// Drifted are the objects that have drifted and are not repaired.
	Drifted []Deviation `json:"drifted,omitempty"`
	// MissingRights are the rules that the user lacks for the reads and dry runs that the server
	// refused, as YAML to paste; empty if it refused none.
	MissingRights string `json:"missingRights,omitempty"`
	// Incomplete are sentences about unknown facts; the plan may be wrong about them.
	Incomplete []string `json:"incomplete,omitempty"`
}

// PlannedChange is one write of a Plan, or an object about which a write is not possible.
type PlannedChange struct {
	Key        Key    `json:"key"`
	APIVersion string `json:"apiVersion"`
	// Class tells how the change affects the object.
	Class ChangeClass `json:"class"`
	// Verb is the request: create, replace, merge, override, mark, delete or orphan. It is
	// empty for an object that is not written because it is blocked.
	Verb string `json:"verb,omitempty"`
	// Reason is the reason, such as "missing".
	Reason string `json:"reason"`
	// Batch counts from 1. The changes of a batch do not wait for each other's readiness. It is
	// 0 for an object that is not written because it is blocked.
	Batch int `json:"batch,omitempty"`
	// Stage counts from 1 within the batch. The changes of a stage are sent at the same time, and
	// the changes of the next stage when the server has accepted them. It is 0 if Batch is.
	Stage int `json:"stage,omitempty"`
	// Hook is the kind of hook of the object, such as pre-upgrade or pre-delete.
	Hook string `json:"hook,omitempty"`
	// Message is why the change is refused or blocked.
	Message string `json:"message,omitempty"`
	// Fields are the first fields that an update changes, and MoreFields counts the rest.
	Fields     []FieldChange `json:"fields,omitempty"`
	MoreFields int           `json:"moreFields,omitempty"`
	// DependsOnCluster is why the server could not be asked about the change, or not about all of
	// it.
	DependsOnCluster string `json:"dependsOnCluster,omitempty"`
	// Destructive: an object is deleted.
	Destructive bool `json:"destructive,omitempty"`
}

// ChangeClass tells how a change affects an object.
type ChangeClass string

// The classes of changes.
const (
	// ChangeCreate is the creation of an object that does not exist.
	ChangeCreate ChangeClass = "Create"
	// ChangeUpdate is a change of the object in place.
	ChangeUpdate ChangeClass = "Update"
	// ChangeRestartsPods is a change of the object in place after which its controller replaces its pods.
	ChangeRestartsPods ChangeClass = "RestartsPods"
	// ChangeRecreate is the deletion and the new creation of the object, as two changes.
	ChangeRecreate ChangeClass = "Recreate"
	// ChangeDelete is the deletion of the object.
	ChangeDelete ChangeClass = "Delete"
	// ChangeOrphan is the removal of the label and annotation of the component; the object stays.
	ChangeOrphan ChangeClass = "Orphan"
	// ChangeAdopt is the adoption of an object that exists.
	ChangeAdopt ChangeClass = "Adopt"
	// ChangeRefused is a change that the API server refuses. The message comes from its validation,
	// quota or webhook.
	ChangeRefused ChangeClass = "Refused"
	// ChangeBlocked is a change that is not possible, because of another owner, of instances or objects of other owners, or of
	// a missing right.
	ChangeBlocked ChangeClass = "Blocked"
)

// FieldChange is a field that differs between two states of an object.
type FieldChange struct {
	// Path leads to the field, such as spec.template.spec.containers[name=api].image.
	Path string `json:"path"`
	// Old and New are texts as they are and other values as JSON, cut if they are long, and
	// masked in Secrets. One is empty if there is no value.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
}

// PlannedWait is an object that is waited for between two batches.
type PlannedWait struct {
	// Batch is the batch that waits; a number after the last one stands for the end.
	Batch int `json:"batch"`
	Wait
}

// Total returns the number of objects with a change of the class. An object that is recreated has
// two changes.
func (p Plan) Total(class ChangeClass) int {
	objects := map[Key]bool{}
	for _, change := range p.Changes {
		if change.Class == class {
			objects[change.Key] = true
		}
	}
	return len(objects)
}

// Sort gives the changes their order.
func (p *Plan) Sort() {
	slices.SortStableFunc(p.Changes, func(a, b PlannedChange) int {
		blocked := func(c PlannedChange) int {
			if c.Batch == 0 {
				return 1
			}
			return 0
		}
		return cmp.Or(blocked(a)-blocked(b), a.Batch-b.Batch, a.Stage-b.Stage, compareKeys(a.Key, b.Key))
	})
}

func compareKeys(a, b Key) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Group, b.Group))
}
