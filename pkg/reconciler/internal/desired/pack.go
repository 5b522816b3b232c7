// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"io"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// blockSize is from how many bytes of JSON on a block of manifests is full. The
// manifests of a component resemble each other, so together they take little; but to
// read one of them, its whole block is unpacked.
const blockSize = 16 << 10

// Pack returns objects whose manifests are compressed, and how many bytes these take.
func Pack(objects []plan.Desired) (packed []plan.Desired, size int) {
	packed = make([]plan.Desired, len(objects))
	var p packer
	for i, object := range objects {
		packed[i] = object
		packed[i].Key, packed[i].Version = shared(object.Key), unique.Make(object.Version).Value()
		if manifest := p.add(object.Unpacked().Manifest); manifest != nil {
			packed[i].Manifest, packed[i].Packed = nil, manifest
		}
	}
	p.close()
	return packed, p.size
}

// shared returns an equal key that shares with others what they have in common, and
// keeps nothing else alive.
func shared(key plan.Key) plan.Key {
	for _, part := range []*string{&key.Group, &key.Kind, &key.Namespace} {
		*part = unique.Make(*part).Value()
	}
	return key
}

// packer collects manifests in blocks.
type packer struct {
	block *block
	raw   bytes.Buffer
	// writer is used for block after block, because a new one takes a megabyte.
	writer *zlib.Writer
	size   int
}

// block holds manifests, each as a line of JSON.
type block struct{ compressed []byte }

// packedManifest is a line of a block.
type packedManifest struct {
	block       *block
	start, size int
}

// add returns nil if the manifest cannot be packed.
func (p *packer) add(manifest *unstructured.Unstructured) plan.Packed {
	encoded, err := json.Marshal(manifest.Object)
	if err != nil {
		return nil
	}
	if p.block == nil {
		p.block = &block{}
	}
	line := packedManifest{block: p.block, start: p.raw.Len(), size: len(encoded)}
	p.raw.Write(encoded)
	if p.raw.Len() >= blockSize {
		p.close()
	}
	return line
}

// close compresses the block under way.
func (p *packer) close() {
	if p.block == nil {
		return
	}
	var compressed bytes.Buffer
	if p.writer == nil {
		p.writer = zlib.NewWriter(&compressed)
	} else {
		p.writer.Reset(&compressed)
	}
	// A buffer takes everything.
	_, _ = p.writer.Write(p.raw.Bytes())
	_ = p.writer.Close()
	p.block.compressed = bytes.Clone(compressed.Bytes())
	p.size += compressed.Len()
	p.raw.Reset()
	p.block = nil
}

// Unpack returns the manifest, each time a new one.
func (m packedManifest) Unpack() *unstructured.Unstructured {
	encoded := make([]byte, m.size)
	reader, err := zlib.NewReader(bytes.NewReader(m.block.compressed))
	if err == nil {
		_, err = io.CopyN(io.Discard, reader, int64(m.start))
	}
	if err == nil {
		_, err = io.ReadFull(reader, encoded)
	}
	manifest := &unstructured.Unstructured{}
	if err == nil {
		err = utiljson.Unmarshal(encoded, &manifest.Object)
	}
	if err != nil {
		return nil // it is our own memory; without a manifest nothing is written
	}
	return manifest
}
