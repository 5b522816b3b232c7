// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An operator that was built with SAP component-operator-runtime keeps its inventory as a list in the same
// field of the status. A component that it made is read as it is, and taken over.

// UnknownManifest stands in the digest of an item for a manifest that is not known, although the
// object was applied. No digest is like it.
const UnknownManifest = "?"

// listedItem holds the fields of an item of such a list that count. Its digest and its policies but
// one do not count: the digest is made in another way, and the policies are in the manifests.
type listedItem struct {
	Group        string       `json:"group"`
	Version      string       `json:"version"`
	Kind         string       `json:"kind"`
	Namespace    string       `json:"namespace"`
	Name         string       `json:"name"`
	DeletePolicy DeletePolicy `json:"deletePolicy"`
	ApplyOrder   int          `json:"applyOrder"`
	DeleteOrder  int          `json:"deleteOrder"`
	ManagedTypes []struct {
		Group string `json:"group"`
		Kind  string `json:"kind"`
	} `json:"managedTypes"`
	Phase         string       `json:"phase"`
	LastAppliedAt *metav1.Time `json:"lastAppliedAt"`
}

// Adopt gives an inventory that was read from a list of SAP component-operator-runtime the form of
// this package, and reports whether it was one. Until it is called, MarshalJSON writes the list as
// it was read: a client that computes a patch starts from the state of the server.
func (i *Inventory) Adopt() bool {
	if i.Foreign == nil {
		return false
	}
	i.Foreign, i.Format = nil, InventoryFormat
	return true
}

// readForeign reads the list of SAP component-operator-runtime. Other clients may be able to write
// the status: a list with any mistake is refused as a whole, because an object that is left out
// would be forgotten.
func (i *Inventory) readForeign(data []byte) error {
	list, err := canonical(data)
	if err != nil {
		return err
	}
	items, err := itemsOfList(list)
	if err != nil {
		return fmt.Errorf("status.inventory is a list, as SAP component-operator-runtime writes it, and cannot be taken over: %w; "+
			"nothing is changed: correct the list, or remove status.inventory to start without it (kubectl edit --subresource=status)", err)
	}
	*i = Inventory{Items: items, Foreign: list}
	return nil
}

func itemsOfList(data []byte) (InventoryItems, error) {
	var entries []json.RawMessage
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, err
	}
	items := make(InventoryItems, 0, len(entries))
	var mistakes []error
	known := make(map[[4]string]bool, len(entries))
	for at, entry := range entries {
		item, err := itemOfEntry(entry)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("item %d%s: %w", at, item.named(), err))
			continue
		}
		key := [...]string{item.Group, item.Kind, item.Namespace, item.Name}
		if known[key] {
			mistakes = append(mistakes, fmt.Errorf("item %d%s: the object is there twice", at, item.named()))
			continue
		}
		known[key] = true
		items = append(items, item)
	}
	const most = 3
	if more := len(mistakes) - most; more > 0 {
		mistakes = append(mistakes[:most], fmt.Errorf("and %d more mistakes", more))
	}
	items.sort()
	return items, joined(mistakes)
}

// joined is errors.Join in one line.
func joined(mistakes []error) error {
	if len(mistakes) == 0 {
		return nil
	}
	var texts []string
	for _, mistake := range mistakes {
		texts = append(texts, mistake.Error())
	}
	return errors.New(strings.Join(texts, "; "))
}

// named is how a mistake names the item; empty if it lacks data.
func (i *InventoryItem) named() string {
	if i.Kind == "" || i.Name == "" {
		return ""
	}
	name := i.Name
	if i.Namespace != "" {
		name = i.Namespace + "/" + name
	}
	return " (" + i.Kind + " " + name + ")"
}

func itemOfEntry(data []byte) (InventoryItem, error) {
	if !bytes.HasPrefix(data, []byte("{")) {
		return InventoryItem{}, errors.New("it is no object")
	}
	var from listedItem
	if err := json.Unmarshal(data, &from); err != nil {
		return InventoryItem{Kind: from.Kind, Namespace: from.Namespace, Name: from.Name}, err
	}
	item := InventoryItem{
		Group: from.Group, Version: from.Version, Kind: from.Kind, Namespace: from.Namespace, Name: from.Name,
		ApplyOrder: int16(from.ApplyOrder), DeleteOrder: int16(from.DeleteOrder), Inherited: true,
	}
	var mistakes []error
	fail := func(format string, arguments ...any) { mistakes = append(mistakes, fmt.Errorf(format, arguments...)) }
	for _, text := range []struct{ field, value string }{{"version", from.Version}, {"kind", from.Kind}, {"name", from.Name}} {
		if text.value == "" {
			fail("%s is missing", text.field)
		}
	}
	if strings.ContainsAny(from.Group+from.Version+from.Kind+from.Namespace+from.Name, "/ \t\r\n") {
		fail("a name or a type has a slash or a space")
	}
	for _, order := range []struct {
		field string
		value int
	}{{"applyOrder", from.ApplyOrder}, {"deleteOrder", from.DeleteOrder}} {
		if order.value < math.MinInt16 || order.value > math.MaxInt16 {
			fail("%s %d is not from %d to %d", order.field, order.value, math.MinInt16, math.MaxInt16)
		}
	}
	switch {
	case from.DeletePolicy == "", from.DeletePolicy == DeletePolicyDelete:
	case from.DeletePolicy == DeletePolicyOrphan, from.DeletePolicy == DeletePolicyOrphanOnApply, from.DeletePolicy == DeletePolicyOrphanOnDelete:
		item.DeletePolicy = from.DeletePolicy
	default:
		fail("deletePolicy %q does not exist", from.DeletePolicy)
	}
	switch from.Phase {
	case "Creating", "Updating", "Ready":
		item.Digest = UnknownManifest
	case "ScheduledForApplication":
		if from.LastAppliedAt != nil {
			item.Digest = UnknownManifest
		}
	case "ScheduledForCompletion", "Completing":
		item.Digest, item.Phase = UnknownManifest, "Completing"
	case "Completed":
		item.Digest, item.Phase = UnknownManifest, "Completed"
	case "ScheduledForDeletion", "Deleting", "":
		// Should it be desired again, it is applied as a new object.
	default:
		fail("phase %q does not exist", from.Phase)
	}
	for _, managed := range from.ManagedTypes {
		if defined := (TypeInfo{Group: managed.Group, Kind: managed.Kind}); !slices.Contains(item.Defines, defined) {
			item.Defines = append(item.Defines, defined)
		}
	}
	return item, joined(mistakes)
}
