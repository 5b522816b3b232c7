// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// Every value starts with its kind, followed by its length if it has one, so no two different
// values have the same encoding.
const (
	tagNull   = 'n'
	tagTrue   = 't'
	tagFalse  = 'f'
	tagInt    = 'i'
	tagFloat  = 'd'
	tagString = 's'
	tagList   = 'l'
	tagMap    = 'm'
	// tagOther is for a value that is no JSON; it is as good as its text.
	tagOther = 'o'
	// These occur in accepted values only.
	tagAbsent = 'a'
	tagFields = 'w'
	tagOrder  = 'r'
)

// encoder writes values in a canonical form.
type encoder struct {
	out []byte
	// keys holds the sorted keys of the maps on the way to the current value,
	// one after the other, so that a map costs no allocation.
	keys []string
	// presence: accepted values say which maps of the manifest are there.
	presence bool
}

func (e *encoder) tag(tag byte) { e.out = append(e.out, tag) }

func (e *encoder) length(n int) { e.out = binary.AppendUvarint(e.out, uint64(n)) }

func (e *encoder) text(text string) {
	e.length(len(text))
	e.out = append(e.out, text...)
}

// texts writes strings one after the other. They cannot run into each other.
func (e *encoder) texts(texts []string) {
	for _, text := range texts {
		e.text(text)
	}
}

func (e *encoder) value(value any) {
	switch v := value.(type) {
	case nil:
		e.tag(tagNull)
	case string:
		e.tag(tagString)
		e.text(v)
	case bool:
		if v {
			e.tag(tagTrue)
		} else {
			e.tag(tagFalse)
		}
	case map[string]any:
		e.mapping(v, nil)
	case []any:
		e.tag(tagList)
		e.length(len(v))
		for _, element := range v {
			e.value(element)
		}
	default:
		e.number(value)
	}
}

// mapping writes a map without the keys to skip.
func (e *encoder) mapping(m map[string]any, skip func(key string) bool) {
	start := len(e.keys)
	for key := range m {
		if skip == nil || !skip(key) {
			e.keys = append(e.keys, key)
		}
	}
	end := len(e.keys)
	slices.Sort(e.keys[start:end])
	e.tag(tagMap)
	e.length(end - start)
	// Values use the end of the same slice, which may move it: so it is
	// asked again for every key.
	for i := start; i < end; i++ {
		key := e.keys[i]
		e.text(key)
		e.value(m[key])
	}
	e.keys = e.keys[:start]
}

// number writes numbers so that equal ones are equal: 1, 1.0 and 1e0 are the same.
func (e *encoder) number(value any) {
	switch v := value.(type) {
	case int64:
		e.integer(v)
		return
	case float64:
		e.float(v)
		return
	case json.Number:
		e.literal(v)
		return
	}
	switch v := reflect.ValueOf(value); {
	case v.CanInt():
		e.integer(v.Int())
	case v.CanUint():
		e.unsigned(v.Uint())
	case v.CanFloat():
		e.float(v.Float())
	default:
		e.other(value)
	}
}

func (e *encoder) integer(v int64) {
	e.tag(tagInt)
	e.out = binary.BigEndian.AppendUint64(e.out, uint64(v))
}

// unsigned writes a number beyond 64 signed bits as JSON decoders of Kubernetes read it, as a
// float.
func (e *encoder) unsigned(v uint64) {
	if v <= math.MaxInt64 {
		e.integer(int64(v))
		return
	}
	e.float(float64(v))
}

func (e *encoder) float(v float64) {
	const limit = 1 << 63
	if v == math.Trunc(v) && v >= -limit && v < limit {
		e.integer(int64(v))
		return
	}
	e.tag(tagFloat)
	e.out = binary.BigEndian.AppendUint64(e.out, math.Float64bits(v))
}

func (e *encoder) literal(v json.Number) {
	if i, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		e.integer(i)
		return
	}
	if f, err := strconv.ParseFloat(string(v), 64); err == nil {
		e.float(f)
		return
	}
	e.tag(tagOther)
	e.text(string(v))
}

// other writes a value that does not occur in objects from a server or from a decoder.
func (e *encoder) other(value any) {
	text, err := json.Marshal(value)
	if err != nil {
		text = []byte(err.Error())
	}
	e.tag(tagOther)
	e.text(string(text))
}

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

// observed writes a live object without its status and the server-kept metadata.
// The type is left out as well: lists and watches may leave it out.
func (e *encoder) observed(live map[string]any) {
	e.mapping(live, func(key string) bool {
		return key == "status" || key == "metadata" || key == "apiVersion" || key == "kind"
	})
	switch metadata := live["metadata"].(type) {
	case map[string]any:
		e.mapping(withoutCounters(metadata), func(key string) bool { return serverKept[key] })
	default:
		e.value(metadata)
	}
}

// counter is an annotation in which the controller of Deployments counts: it changes after each
// change of a Deployment, and adds nothing to its content.
const counter = "deployment.kubernetes.io/revision"

// withoutCounters returns metadata without annotations in which controllers count.
func withoutCounters(metadata map[string]any) map[string]any {
	annotations, _ := metadata["annotations"].(map[string]any)
	if _, counts := annotations[counter]; !counts {
		return metadata
	}
	metadata, annotations = maps.Clone(metadata), maps.Clone(annotations)
	if delete(annotations, counter); len(annotations) == 0 {
		delete(metadata, "annotations")
	} else {
		metadata["annotations"] = annotations
	}
	return metadata
}
