// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"hash"
	"slices"
	"strings"
	"sync"
)

// size is how many bytes of a hash are kept: 128 bits. The inventory holds three
// digests per object, so every byte counts.
const size = 16

// Hasher makes digests. The zero value uses SHA-256; with a key, HMAC with
// SHA-256. It is safe for concurrent use. Digests have 22 characters.
type Hasher struct {
	Key []byte
}

// Manifest returns the digest of a whole manifest.
func (h Hasher) Manifest(manifest map[string]any) string {
	e := newEncoder()
	defer e.free()
	e.value(manifest)
	return h.sum(e.out)
}

// ObservedHash returns the digest of a live object without its status and without the
// metadata that the server keeps and that changes by itself.
func (h Hasher) ObservedHash(live map[string]any) string {
	e := newEncoder()
	defer e.free()
	e.observed(live)
	return h.sum(e.out)
}

// AppliedHash returns the digest of the live values at the paths that the manifest sets, without
// the ignored paths. The latter are JSON pointers (RFC 6901) into the manifest.
//
// A path that the live object lacks counts as absent. Maps count only with the keys that the
// manifest sets, and whether they are there; where an empty map selects everything, it counts
// whether it is empty. Lists of maps with elements that can be distinguished, by their name for
// example, count only with the elements that the manifest has; other lists count as a whole.
func (h Hasher) AppliedHash(live, manifest map[string]any, ignore []string) string {
	return appliedVersion + h.applied(live, manifest, ignore, true)
}

// appliedVersion starts each AppliedHash. Hashes of the first version, in which it did not count
// which maps are there, have none.
const appliedVersion = "2:"

// EarlierAppliedHash returns the AppliedHash in the version of a recorded one, to compare the two;
// it is empty if that is the present version.
func (h Hasher) EarlierAppliedHash(recorded string, live, manifest map[string]any, ignore []string) string {
	if recorded == "" || strings.HasPrefix(recorded, appliedVersion) {
		return ""
	}
	return h.applied(live, manifest, ignore, false)
}

func (h Hasher) applied(live, manifest map[string]any, ignore []string, presence bool) string {
	e := newEncoder()
	defer e.free()
	e.presence = presence
	e.applied(live, manifest, newMask(ignore))
	return h.sum(e.out)
}

// Combine returns one digest for several strings, like the function Combine.
func (h Hasher) Combine(parts ...string) string {
	e := newEncoder()
	defer e.free()
	e.texts(parts)
	return h.sum(e.out)
}

// Seal returns the proof that an object belongs to an owner: both are given as strings
// that identify them. It is empty without a key, because it would prove nothing.
func (h Hasher) Seal(owner string, object ...string) string {
	if len(h.Key) == 0 {
		return ""
	}
	e := newEncoder()
	defer e.free()
	e.text(owner)
	e.texts(object)
	return h.sumFor("seal", e.out)
}

// ID identifies the key, without revealing it. It is empty without a key.
func (h Hasher) ID() string {
	const length = 8
	if len(h.Key) == 0 {
		return ""
	}
	return h.sumFor("id", nil)[:length]
}

func (h Hasher) sum(data []byte) string {
	if len(h.Key) > 0 {
		return h.sumFor("", data)
	}
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:size])
}

// sumFor hashes with the key for a purpose: nothing that is hashed with the key itself,
// and shown, can be a seal.
func (h Hasher) sumFor(purpose string, data []byte) string {
	m := macs.Get().(*mac)
	defer macs.Put(m)
	if m.hash == nil || !bytes.HasPrefix(m.key, h.Key) || string(m.key[len(h.Key):]) != purpose {
		m.key = slices.Concat(h.Key, []byte(purpose))
		m.hash = hmac.New(sha256.New, m.key)
	}
	m.hash.Reset()
	m.hash.Write(data)
	m.out = m.hash.Sum(m.out[:0])
	return base64.RawURLEncoding.EncodeToString(m.out[:size])
}

// mac is an HMAC with its key. They are kept between calls, because to set one up costs
// more than to hash a small object.
type mac struct {
	key  []byte
	hash hash.Hash
	out  []byte
}

var macs = sync.Pool{New: func() any { return new(mac) }}

// Combine returns one digest for several strings. Their order matters, and
// strings cannot run into each other: ("a", "b") differs from ("ab", "").
func Combine(parts ...string) string {
	return Hasher{}.Combine(parts...)
}

// OwnerID returns a hash of an owner as the value of a label: 32
// characters, a to z and 2 to 7.
func OwnerID(clusterUID, group, kind, namespace, name string) string {
	const bytes = 20 // 160 bits fill 32 characters of base32 without padding
	e := newEncoder()
	defer e.free()
	e.texts([]string{clusterUID, group, kind, namespace, name})
	sum := sha256.Sum256(e.out)
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:bytes]))
}

// ForeignOwnerID returns the value that SAP component-operator-runtime gives to the label owner-id
// of the objects of a component: a hash of its annotation owner-id. The cluster is the component's
// own.
func ForeignOwnerID(clusterUID, namespace, name string) string {
	sum := sha256.Sum256([]byte(clusterUID + "/" + namespace + "/" + name))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// encoders are kept between calls, because a process makes many digests and
// most objects fit into the buffer of the one before.
var encoders = sync.Pool{New: func() any { return new(encoder) }}

func newEncoder() *encoder {
	e := encoders.Get().(*encoder)
	e.out, e.keys = e.out[:0], e.keys[:0]
	return e
}

// free gives the buffers back, without the strings they refer to; very large
// ones are dropped.
func (e *encoder) free() {
	const keepBytes, keepKeys = 1 << 20, 1 << 12
	if cap(e.out) > keepBytes || cap(e.keys) > keepKeys {
		return
	}
	clear(e.keys[:cap(e.keys)])
	encoders.Put(e)
}
