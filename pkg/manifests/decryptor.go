// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

// Decryptor turns the files of a generator into plain text when they are read.
// It gets every file and returns those that are not encrypted as they are.
type Decryptor interface {
	// Decrypt returns the plain text of the file with this path, which is for
	// picking keys and for errors. The input must not be changed. The error must
	// not contain plain text: it ends up in the status of components.
	Decrypt(input []byte, path string) ([]byte, error)
}

// DecryptorFunc makes a function a Decryptor.
type DecryptorFunc func(input []byte, path string) ([]byte, error)

// Decrypt calls the function.
func (f DecryptorFunc) Decrypt(input []byte, path string) ([]byte, error) { return f(input, path) }
