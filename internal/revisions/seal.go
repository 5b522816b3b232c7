// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/corbel-run/corbel/internal/gzipped"
)

const (
	// purpose makes the key of the seals differ from all other keys that are derived from the same
	// key.
	purpose = "corbel.run/revisions"
	// maxSealed bounds the sealed content of a revision, in bytes. A Secret holds that of two.
	//
	// Limit: the random values of one revision, compressed and encrypted; more are in memory only.
	maxSealed = 384 << 10
	// maxOpened bounds content, in bytes.
	maxOpened = 64 << 20
)

// A TooLargeError means that content does not fit into a Secret.
type TooLargeError struct{ Bytes, Limit int }

// Error names the size and the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("it has %d bytes, and no more than %d can be kept", e.Bytes, e.Limit)
}

// errChanged does not name the cause, because the cipher knows none.
var errChanged = errors.New("it does not open: it was changed, or was written for something else or with another key")

// seal compresses and encrypts content. The bound value is not part of the result, which has at
// most limit bytes.
func seal(key, boundTo, content []byte, limit int) ([]byte, error) {
	aead, err := cipherOf(key)
	if err != nil {
		return nil, err
	}
	if len(content) > maxOpened {
		return nil, &TooLargeError{Bytes: len(content), Limit: maxOpened}
	}
	packed := gzipped.Pack(content)
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(packed)+aead.Overhead())
	rand.Read(nonce) // never fails
	sealed := aead.Seal(nonce, nonce, packed, boundTo)
	if len(sealed) > limit {
		return nil, &TooLargeError{Bytes: len(sealed), Limit: max(limit, 0)}
	}
	return sealed, nil
}

// open is the inverse of seal.
func open(key, boundTo, sealed []byte) ([]byte, error) {
	aead, err := cipherOf(key)
	if err != nil {
		return nil, err
	}
	if len(sealed) < aead.NonceSize() {
		return nil, errChanged
	}
	packed, err := aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], boundTo)
	if err != nil {
		return nil, errChanged
	}
	content, err := gzipped.Unpack(packed, maxOpened)
	if err != nil {
		return nil, errChanged
	}
	return content, nil
}

func cipherOf(key []byte) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, key, nil, purpose, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
