// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

func TestAValueIsRedactedAsLanguagesEscapeIt(t *testing.T) {
	r := newRedactor([][]byte{[]byte("a b&c=(d)/é😀\"<\n")})
	for name, form := range map[string]string{
		"as it is":                  "a b&c=(d)/é😀\"<",
		"in JSON":                   `a b\u0026c=(d)/é😀\"\u003c`,
		"in JSON of Python":         `a b&c=(d)/\u00e9\ud83d\ude00\"<`,
		"in JSON of ASCII":          `a b\u0026c=(d)/\u00e9\ud83d\ude00\"\u003c`,
		"in a log":                  `a b&c=(d)/é😀\"<`,
		"in the query of a URL":     "a+b%26c%3D%28d%29%2F%C3%A9%F0%9F%98%80%22%3C",
		"by encodeURIComponent":     "a%20b%26c%3D(d)%2F%C3%A9%F0%9F%98%80%22%3C",
		"by the quote of Python":    "a%20b%26c%3D%28d%29/%C3%A9%F0%9F%98%80%22%3C",
		"in the path of a URL":      "a%20b&c=%28d%29%2F%C3%A9%F0%9F%98%80%22%3C",
		"in Base64":                 "YSBiJmM9KGQpL8Op8J+YgCI8Cg==",
		"in Base64, without its LF": "YSBiJmM9KGQpL8Op8J+YgCI8",
	} {
		check.EqualNamed(t, name, "x *** y", r.text("x "+form+" y"))
	}
}
