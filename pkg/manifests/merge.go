// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

// MergeMaps returns a deep copy of x with y merged into it, see MergeMapInto.
// Neither x nor y is changed, and the result shares no map or list with them.
func MergeMaps(x, y map[string]any) map[string]any {
	return MergeMapInto(MergeMapInto(nil, x), y)
}

// MergeMapInto merges y into x and returns x, or a new map if x is nil. Where
// both sides hold a map under a key, the two are merged; everything else in y,
// null and lists included, replaces what x holds. Maps and lists of y are
// copied, so that x shares none of them afterwards.
func MergeMapInto(x, y map[string]any) map[string]any {
	if x == nil {
		x = make(map[string]any, len(y))
	}
	for key, value := range y {
		inY, isMap := value.(map[string]any)
		inX, _ := x[key].(map[string]any)
		if isMap && inX != nil && inY != nil {
			MergeMapInto(inX, inY)
		} else {
			x[key] = copyValue(value)
		}
	}
	return x
}

func copyValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if value == nil {
			return value
		}
		return MergeMapInto(nil, value)
	case []any:
		if value == nil {
			return value
		}
		list := make([]any, len(value))
		for i := range value {
			list[i] = copyValue(value[i])
		}
		return list
	default:
		return value
	}
}
