// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gzipped

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
)

func TestContentIsUnpackedAsItWas(t *testing.T) {
	var packing sync.WaitGroup
	for i := range 32 {
		packing.Go(func() {
			content := []byte(strings.Repeat("abc", i*i))
			packed := Pack(content)
			if got, err := Unpack(packed, int64(len(content))); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d bytes: got %d and error %v", len(content), len(got), err)
			}
			if again := Pack(content); !bytes.Equal(again, packed) {
				t.Errorf("%d bytes are packed differently the second time", len(content))
			}
		})
	}
	packing.Wait()
}

func TestWhatCannotBeUnpackedIsAnError(t *testing.T) {
	packed := Pack(make([]byte, 100))
	if _, err := Unpack(packed, 99); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: error %v", err)
	}
	for name, content := range map[string][]byte{"nothing": nil, "text": []byte("text"), "the beginning": packed[:len(packed)-4]} {
		if got, err := Unpack(content, 100); err == nil || errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: got %q and error %v", name, got, err)
		}
	}
}
