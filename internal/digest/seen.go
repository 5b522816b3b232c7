// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package digest

// serverKept are the fields of the metadata that the server maintains and that
// change without a change of the object's meaning.
var serverKept = map[string]bool{
	"managedFields":              true,
	"resourceVersion":            true,
	"generation":                 true,
	"creationTimestamp":          true,
	"deletionTimestamp":          true,
	"deletionGracePeriodSeconds": true,
	"selfLink":                   true,
}

// seen writes a live object without its status and the server-kept metadata.
// The type is left out as well: lists and watches may leave it out.
func (e *encoder) seen(live map[string]any) {
	e.mapping(live, func(key string) bool {
		return key == "status" || key == "metadata" || key == "apiVersion" || key == "kind"
	})
	switch metadata := live["metadata"].(type) {
	case map[string]any:
		e.mapping(metadata, func(key string) bool { return serverKept[key] })
	default:
		e.value(metadata)
	}
}
