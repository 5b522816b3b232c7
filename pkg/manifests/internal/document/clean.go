// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

var byteOrderMark = []byte("\ufeff")

// clean removes a byte order mark and refuses what is no text. The parser does
// so as well, but without saying where.
func clean(data []byte) ([]byte, *Error) {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return nil, &Error{Line: 1, Err: errors.New("the text is UTF-16, want UTF-8")}
	}
	data = bytes.TrimPrefix(data, byteOrderMark)
	for i := 0; i < len(data); {
		if c := data[i]; c < utf8.RuneSelf {
			if !isText(rune(c)) {
				return nil, illegal(data, i, fmt.Errorf("control character %U", c))
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return nil, illegal(data, i, errors.New("the text is not valid UTF-8"))
		}
		if !isText(r) {
			return nil, illegal(data, i, fmt.Errorf("character %U is not allowed", r))
		}
		i += size
	}
	return data, nil
}

func illegal(data []byte, at int, err error) *Error {
	return &Error{Line: 1 + bytes.Count(data[:at], []byte("\n")), Err: err}
}

// isText tells whether YAML allows the character.
func isText(r rune) bool {
	switch {
	case r == '\t' || r == '\n' || r == '\r' || r == 0x85:
		return true
	case r < 0x20, r >= 0x7f && r < 0xa0, r == 0xfeff, r == 0xfffe, r == 0xffff:
		return false
	}
	return true
}
