// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// TestASharedTypeIsNeitherWrittenNorRecorded plans for an instance and its shared type in each state of the type.
func TestASharedTypeIsNeitherWrittenNorRecorded(t *testing.T) {
	definition := Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "foos.example.com"}
	foo := Key{Group: "example.com", Kind: "Foo", Namespace: "shop", Name: "one"}
	defines := []v1alpha1.TypeInfo{{Group: "example.com", Kind: "Foo"}}
	present := Observation{Existence: Present, UID: "u1", ResourceVersion: "7", Shared: "abc 1.0.0", Status: Status{Readiness: Ready}}
	accepting, deleting := present, present
	accepting.Status = Status{Readiness: NotReady, Message: "names are not accepted"}
	deleting.DeletionTimestamp = time.Unix(1, 0)
	owned := present
	owned.Shared, owned.Ownership = "", Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref}
	former := v1alpha1.InventoryItem{Group: definition.Group, Version: "v1", Kind: definition.Kind, Name: definition.Name, UID: "u1", Digest: "d", Defines: defines}
	tests := []struct {
		name     string
		live     Observation
		recorded []v1alpha1.InventoryItem
		failed   bool
		want     []string
	}{
		{"it is ready", present, nil, false, []string{"create one", "2 recorded 1, settled 1"}},
		{"it is ready, and a former version has recorded it", present, []v1alpha1.InventoryItem{former}, false, []string{"create one", "2 recorded 1, settled 1"}},
		{"it is not ready", accepting, nil, false, []string{"foos.example.com NotReady", "one Order", "2 recorded 1, settled 0"}},
		{"it is being deleted", deleting, nil, false, []string{"foos.example.com Terminating", "one Order", "2 recorded 1, settled 0"}},
		{"it is not known", Observation{Message: "cannot be read"}, nil, false, []string{"foos.example.com Unknown", "one Order", "2 recorded 1, settled 0"}},
		{"it is not known, and a former version has recorded it", Observation{Message: "cannot be read"}, []v1alpha1.InventoryItem{former}, false, []string{"foos.example.com Unknown", "one Order", "2 recorded 2, settled 0"}},
		{"it has the label of its former owner", owned, []v1alpha1.InventoryItem{former}, false, []string{"create one", "2 recorded 2, settled 1"}},
		{"it does not exist", Observation{Existence: Absent}, []v1alpha1.InventoryItem{former}, false, []string{"foos.example.com Unknown", "one Order", "2 recorded 1, settled 0"}},
		{"its last write failed", present, nil, true, []string{"foos.example.com StepFailed", "one Order", "2 recorded 1, settled 0"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := Input{
				Name: reconcilerName, Owner: theOwner, Recorded: test.recorded, Failed: map[Key]Failure{},
				Desired: []Desired{
					{Key: definition, Version: "v1", Policies: defaultPolicies(), Digest: "other", Defines: defines, Shared: true},
					{Key: foo, Version: "v1", Policies: defaultPolicies(), Digest: "d"},
				},
				Live: map[Key]Observation{definition: test.live, foo: {Existence: Absent}},
			}
			if test.failed {
				in.Failed[definition] = Failure{Message: "it breaks objects"}
			}
			p, err := Next(in)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, step := range p.Steps {
				got = append(got, fmt.Sprint(step.Verb, " ", step.Key.Name))
			}
			for _, wait := range p.Waiting {
				got = append(got, wait.Key.Name+" "+string(wait.Reason))
			}
			got = append(got, fmt.Sprintf("%d recorded %d, settled %d", p.Total, len(p.Inventory), p.Settled))
			if diff := cmp.Diff(test.want, got); diff != "" || len(p.Gone) > 0 {
				t.Errorf("-want +got:\n%s, gone %v", diff, p.Gone)
			}
			if p.Inventory[len(p.Inventory)-1].Kind != "Foo" {
				t.Errorf("recorded: %v", p.Inventory)
			}
		})
	}
}
