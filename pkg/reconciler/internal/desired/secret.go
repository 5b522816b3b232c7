// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/base64"
	"slices"
)

// encodeSecret merges stringData into data, as the server would. Otherwise what
// the manifest sets and what the server keeps would never be the same. Values
// must not get into messages.
func (i *item) encodeSecret() {
	if at(i.content, "stringData") == nil {
		delete(i.content, "stringData")
		return
	}
	plain, isMap := i.content["stringData"].(map[string]any)
	if !isMap {
		i.fail("stringData is not a map but %s", describe(i.content["stringData"]))
		return
	}
	data, isMap := i.content["data"].(map[string]any)
	if !isMap && i.content["data"] != nil {
		i.fail("data is not a map but %s", describe(i.content["data"]))
		return
	}
	if data == nil {
		data = map[string]any{}
	}
	var wrong []string
	for name, value := range plain {
		secret, isString := value.(string)
		if !isString {
			wrong = append(wrong, name)
			continue
		}
		data[name] = base64.StdEncoding.EncodeToString([]byte(secret))
	}
	slices.Sort(wrong)
	for _, name := range wrong {
		i.fail("stringData: the value of %s is not a string but %s: quote it", name, describe(plain[name]))
	}
	delete(i.content, "stringData")
	if len(data) > 0 {
		i.content["data"] = data
	}
}
