// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gzipped

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"sync"
)

// ErrTooLarge means that the content is larger than the limit.
var ErrTooLarge = errors.New("the content is larger than the limit")

// writers are used again, because a new one takes a megabyte.
var writers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// Pack compresses content.
func Pack(content []byte) []byte {
	var packed bytes.Buffer
	writer := writers.Get().(*gzip.Writer)
	defer writers.Put(writer)
	writer.Reset(&packed)
	// A write to a buffer does not fail.
	_, _ = writer.Write(content)
	_ = writer.Close()
	return bytes.Clone(packed.Bytes()) // the result has no room to grow
}

// Unpack is the inverse of Pack. The error is ErrTooLarge if the content has more than limit bytes.
func Unpack(packed []byte, limit int64) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(reader, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = ErrTooLarge
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}
