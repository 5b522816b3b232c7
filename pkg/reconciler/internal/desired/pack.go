// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"reflect"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/gzipped"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// blockSize is from how many bytes of JSON on a block of manifests is full. The
// manifests of a component resemble each other, so together they need little memory; but to
// read one of them, its whole block is unpacked.
const blockSize = 16 << 10

// perObject is about how many bytes an object needs besides its manifest.
const perObject = 256

// Pack are objects in a form that needs little memory.
type Pack struct {
	objects []packedObject
	// Size is about how many bytes the objects need.
	Size int
}

// packedObject is a plan.Desired that shares the parts that most objects have in common.
type packedObject struct {
	key      plan.Key
	version  string
	policies *policy.Set
	digest   string
	hook     string
	expires  bool
	defines  []v1alpha1.TypeInfo
	scales   *plan.Key
	shared   bool
	manifest packedManifest
}

// NewPack packs objects; ok is false if a manifest is none that could be sent.
func NewPack(objects []plan.Desired) (pack *Pack, ok bool) {
	pack = &Pack{objects: make([]packedObject, len(objects))}
	var p packer
	for i := range objects {
		object := objects[i].Unpacked()
		manifest, ok := p.add(object.Manifest)
		if !ok {
			return nil, false
		}
		policies := &object.Policies
		if i > 0 && reflect.DeepEqual(pack.objects[i-1].policies, policies) {
			policies = pack.objects[i-1].policies
		} else {
			own := *policies // of the object, nothing else is kept
			policies = &own
		}
		pack.objects[i] = packedObject{
			key: shared(object.Key), version: unique.Make(object.Version).Value(), policies: policies,
			digest: object.Digest, hook: unique.Make(object.Hook).Value(), expires: object.HasTTL, defines: object.Defines, scales: object.ScaleTarget, shared: object.Shared, manifest: manifest,
		}
	}
	p.close()
	pack.Size = p.size + len(objects)*perObject
	return pack, true
}

// Objects returns the objects; their manifests stay packed.
func (p *Pack) Objects() []plan.Desired {
	objects := make([]plan.Desired, len(p.objects))
	for i := range p.objects {
		o := &p.objects[i]
		objects[i] = plan.Desired{
			Key: o.key, Version: o.version, Policies: *o.policies, Digest: o.digest, Hook: o.hook, HasTTL: o.expires, Defines: o.defines, ScaleTarget: o.scales, Shared: o.shared, Packed: &o.manifest,
		}
	}
	return objects
}

// shared returns an equal key that shares its common parts with other keys, and keeps nothing else
// alive.
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
	size  int
}

// block holds manifests, each as a line of JSON.
type block struct{ compressed []byte }

// packedManifest is a line of a block.
type packedManifest struct {
	block       *block
	start, size int32
}

func (p *packer) add(manifest *unstructured.Unstructured) (packedManifest, bool) {
	if manifest == nil {
		return packedManifest{}, false
	}
	encoded, err := json.Marshal(manifest.Object)
	if err != nil || len(encoded) > math.MaxInt32 {
		return packedManifest{}, false
	}
	if p.block == nil {
		p.block = &block{}
	}
	line := packedManifest{block: p.block, start: int32(p.raw.Len()), size: int32(len(encoded))}
	p.raw.Write(encoded)
	if p.raw.Len() >= blockSize {
		p.close()
	}
	return line, true
}

func (p *packer) close() {
	if p.block == nil {
		return
	}
	p.block.compressed = gzipped.Pack(p.raw.Bytes())
	p.size += len(p.block.compressed)
	p.raw.Reset()
	p.block = nil
}

// Unpack returns the manifest, each time a new one.
func (m *packedManifest) Unpack() *unstructured.Unstructured {
	encoded := make([]byte, m.size)
	reader, err := gzip.NewReader(bytes.NewReader(m.block.compressed))
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
