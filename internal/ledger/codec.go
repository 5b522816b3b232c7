// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// maxContent bounds what is read of a chunk: a small entry may unpack to anything.
const maxContent = 16 << 20

// content is the JSON of the items of a chunk.
func content(items []v1alpha1.InventoryItem) ([]byte, error) {
	var buffer bytes.Buffer
	buffer.WriteByte('[')
	for i := range items {
		raw, err := json.Marshal(&items[i])
		if err != nil {
			return nil, encodeError(items[i], err)
		}
		if i > 0 {
			buffer.WriteByte(',')
		}
		buffer.Write(raw)
	}
	buffer.WriteByte(']')
	return buffer.Bytes(), nil
}

func hashOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// pack returns the entry that holds a content.
func pack(raw []byte) ([]byte, error) {
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	if _, err := writer.Write(raw); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// unpack returns the items of an entry, if it holds what the head says.
func unpack(entry []byte, chunk v1alpha1.InventoryChunk) ([]v1alpha1.InventoryItem, error) {
	reader, err := gzip.NewReader(bytes.NewReader(entry))
	if err != nil {
		return nil, errors.New("it is not compressed as it was written")
	}
	raw, err := io.ReadAll(io.LimitReader(reader, maxContent+1))
	switch {
	case err != nil:
		return nil, errors.New("it is not compressed as it was written")
	case len(raw) > maxContent:
		return nil, fmt.Errorf("it unpacks to more than %d bytes", maxContent)
	case hashOf(raw) != chunk.Hash:
		return nil, errors.New("its hash is not the one in the status")
	}
	var items []v1alpha1.InventoryItem
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, fmt.Errorf("it holds no items: %w", err)
	}
	if len(items) != int(chunk.Count) {
		return nil, fmt.Errorf("it holds %d items, and the status says %d", len(items), chunk.Count)
	}
	return items, nil
}
