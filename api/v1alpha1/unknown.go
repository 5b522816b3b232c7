// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	strictjson "sigs.k8s.io/json"
)

// An inventory outlives the version that wrote it. An older version that reads it, perhaps only for
// the minutes of a rollback, must write back fields that it does not understand.

// MarshalJSON writes the fields, and after them the unknown ones.
func (i Inventory) MarshalJSON() ([]byte, error) {
	type plain Inventory
	if i.Foreign != nil {
		return i.Foreign, nil
	}
	return marshalWith(plain(i), i.Unknown)
}

// UnmarshalJSON reads the fields, and keeps the unknown ones. It also reads the list that SAP
// component-operator-runtime writes, see Adopt.
func (i *Inventory) UnmarshalJSON(data []byte) error {
	type plain Inventory
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return i.readForeign(data)
	}
	unknown, err := unmarshalWith(data, (*plain)(i))
	i.Unknown, i.Foreign = unknown, nil
	return err
}

// MarshalJSON writes the fields, and after them the unknown ones.
func (i InventoryItem) MarshalJSON() ([]byte, error) {
	type plain InventoryItem
	return marshalWith(plain(i), i.Unknown)
}

// UnmarshalJSON reads the fields, and keeps the unknown ones.
func (i *InventoryItem) UnmarshalJSON(data []byte) error {
	type plain InventoryItem
	unknown, err := unmarshalWith(data, (*plain)(i))
	i.Unknown = unknown
	return err
}

// marshalWith writes a struct, and more fields behind its own.
func marshalWith[T any](value T, unknown map[string]json.RawMessage) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil || len(unknown) == 0 {
		return data, err
	}
	rest, err := json.Marshal(unknown)
	if err != nil {
		return nil, err
	}
	if len(data) > len("{}") {
		rest[0] = ','
	} else {
		rest = rest[1:]
	}
	return append(data[:len(data)-1], rest...), nil
}

// unmarshalWith reads a struct and returns the fields that it does not have.
// Normally there are none, and the data is decoded only once.
func unmarshalWith[T any](data []byte, into *T) (map[string]json.RawMessage, error) {
	strict, err := strictjson.UnmarshalStrict(data, into, strictjson.DisallowUnknownFields)
	if err != nil || len(strict) == 0 {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := strictjson.UnmarshalCaseSensitivePreserveInts(data, &fields); err != nil {
		return nil, err
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		delete(fields, name)
	}
	for name, value := range fields {
		var err error
		if fields[name], err = canonical(value); err != nil {
			return nil, fmt.Errorf("field %s: %w", name, err)
		}
	}
	if len(fields) == 0 {
		return nil, nil
	}
	return fields, nil
}

// canonical returns the one form of a value that does not depend on its
// encoder, so that inventories can be compared.
func canonical(value json.RawMessage) (json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var decoded any
	if err := decoder.Decode(&decoded); err != nil {
		return nil, err
	}
	return json.Marshal(decoded)
}
