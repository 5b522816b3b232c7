// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

// Readiness is whether an object does what its manifest asks for.
type Readiness int

const (
	// NotReady means that work on the object is in progress.
	NotReady Readiness = iota
	// Ready means that the object does what its manifest asks for.
	Ready
	// Failed means that the object says that it failed.
	Failed
	// Unjudged means that the type declares status conditions, but that nobody
	// wrote a status yet. Whether that counts as ready depends on how long
	// ago the object was written, which the caller knows.
	Unjudged
)

// String returns the name of the constant.
func (r Readiness) String() string {
	switch r {
	case NotReady:
		return "NotReady"
	case Ready:
		return "Ready"
	case Failed:
		return "Failed"
	case Unjudged:
		return "Unjudged"
	default:
		return "Readiness(?)"
	}
}

// Status is the judgement about an object.
type Status struct {
	Readiness Readiness
	// Message says why the object is not ready, such as "1 of 3 replicas
	// ready", in one line of at most 200 bytes. It is empty for Ready. It stays
	// the same as long as nothing of interest changes.
	Message string
}

// Hints say what the status of an object is going to hold, so that its absence
// means that nobody looked at the object yet.
type Hints struct {
	// ObservedGeneration: there will be a status.observedGeneration, or one
	// in the Ready condition.
	ObservedGeneration bool
	// ReadyCondition: there will be a condition of type Ready. It must be True.
	ReadyCondition bool
	// Conditions are types of conditions that must all be True.
	Conditions []string
}

// Options say what is known about an object beyond what it shows itself.
type Options struct {
	Hints Hints
	// ReadyWhen replaces the rules of the object's type; nil means that these
	// hold. Deletion, observed generations and Hints count in any case.
	ReadyWhen *Program
	// DeclaresConditions tells that the schema of the type declares status
	// conditions (see DeclaresConditions), so an empty status is unjudged.
	DeclaresConditions bool
}
