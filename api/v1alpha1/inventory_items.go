// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// InventoryItems are the items of an inventory, ordered by group, kind, namespace and
// name.
//
// People read a status, too. So the JSON form is an object with one member for each item: a
// name that says which object it is, such as "apps/v1 Deployment shop/web" or "v1
// Namespace shop", and a string with the rest of the item, which is only for the operator.
type InventoryItems []InventoryItem

// MarshalJSON writes the object. Of two items of one name the later counts.
func (items InventoryItems) MarshalJSON() ([]byte, error) {
	objects := make(map[string]string, len(items))
	for i := range items {
		record, err := items[i].record()
		if err != nil {
			return nil, err
		}
		objects[items[i].title()] = string(record)
	}
	return json.Marshal(objects)
}

// UnmarshalJSON reads the object. A client with the right to write the status can put anything
// there: a name of another form is left out, and a value that cannot be read leaves an item that
// only identifies the object.
func (items *InventoryItems) UnmarshalJSON(data []byte) error {
	var objects map[string]json.RawMessage
	if err := json.Unmarshal(data, &objects); err != nil {
		return err
	}
	*items = nil
	for title, value := range objects {
		var record string
		if err := json.Unmarshal(value, &record); err != nil {
			record = ""
		}
		if item, ok := itemOf(title, record); ok {
			*items = append(*items, item)
		}
	}
	items.sort()
	return nil
}

func (items InventoryItems) sort() {
	slices.SortFunc(items, func(a, b InventoryItem) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
}

// title is the name of the item in an inventory.
func (i *InventoryItem) title() string {
	version, name := i.Version, i.Name
	if i.Group != "" {
		version = i.Group + "/" + version
	}
	if i.Namespace != "" {
		name = i.Namespace + "/" + name
	}
	return version + " " + i.Kind + " " + name
}

// record is the JSON of the fields that are not in the title.
func (i *InventoryItem) record() ([]byte, error) {
	type plain InventoryItem
	return marshalWith(struct {
		plain
		// These hide the fields of the same names, and are empty.
		Group     string `json:"group,omitempty"`
		Version   string `json:"version,omitempty"`
		Kind      string `json:"kind,omitempty"`
		Namespace string `json:"namespace,omitempty"`
		Name      string `json:"name,omitempty"`
	}{plain: plain(*i)}, i.Unknown)
}

// itemOf is the inverse of title and record. It returns false if the title is none.
func itemOf(title, record string) (InventoryItem, bool) {
	apiVersion, rest, _ := strings.Cut(title, " ")
	kind, name, _ := strings.Cut(rest, " ")
	if apiVersion == "" || kind == "" || name == "" {
		return InventoryItem{}, false
	}
	var item InventoryItem
	if err := json.Unmarshal([]byte(record), &item); err != nil {
		item = InventoryItem{}
	}
	group, version, hasGroup := strings.Cut(apiVersion, "/")
	if !hasGroup {
		group, version = "", apiVersion
	}
	namespace, name, hasNamespace := strings.Cut(name, "/")
	if !hasNamespace {
		namespace, name = "", namespace
	}
	item.Group, item.Version, item.Kind, item.Namespace, item.Name = group, version, kind, namespace, name
	return item, true
}
