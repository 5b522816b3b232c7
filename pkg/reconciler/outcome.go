// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/rights"
)

// Outcome is the result of a request. It is valid also when the call returned an error.
type Outcome struct {
	// Inventory is the record to persist.
	Inventory v1alpha1.Inventory
	// OwnerID is the value of the label owner-id of the owner's objects.
	OwnerID string
	// Waiting are the objects that are not settled, and why. No entry
	// and no error means that the request is fulfilled.
	Waiting []report.Wait
	// Awaited are the objects of other owners that some of them wait for: when one changes,
	// another call may come further.
	Awaited []report.AwaitedObject
	// Settled and Total count the desired objects, and Ignored those among them that the adoption policy ignore leaves to other owners; in
	// a deletion, Settled and Total count the objects that were recorded at the start of this call.
	Settled, Total, Ignored int
	// ManifestDigest identifies the set of desired manifests.
	ManifestDigest string
	// Desired are the desired objects, for calls that follow; nil if there are mistakes in
	// them, and after a deletion.
	Desired *DesiredSet
	// Retained are the objects of ApplyRequest.Retain that are there and are not desired.
	Retained []report.Key
	// NextDriftCheck is when the first object may be read that was not read, because it is
	// edited too often; zero if there is none. No Change follows then.
	NextDriftCheck time.Time
	// Steps counts the executed steps by verb, such as "create".
	Steps map[string]int
	// Notes are sentences worth an event: adopted, orphaned, put back, repaired.
	Notes []report.Note
	// Drifted are the objects that another client changed or deleted and that are not
	// repaired, because their drift policy is to report it.
	Drifted []report.Deviation
	// Missing are the rights that the server named when it refused requests of this call.
	Missing rights.Missing
	// Outputs are the values that the desired objects publish.
	Outputs []Output
	// failed: the call returned an error, so it did not come to its end.
	failed bool
}

// Done reports whether nothing is left to do and nothing is waited for. It is false
// if the call returned an error.
func (o Outcome) Done() bool { return !o.failed && len(o.Waiting) == 0 }
