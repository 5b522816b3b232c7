// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"time"
)

// file is a file of an archive.
type file struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// pack returns the archive that the users of a platform expect, and the ending of its name. All entries have one date, and no owner but root.
func pack(on platform, files []file, date time.Time) ([]byte, string, error) {
	if on.os == "windows" {
		content, err := zipped(files, date)
		return content, ".zip", err
	}
	content, err := tarred(files, date)
	if err == nil {
		content, err = gzipped(content)
	}
	return content, ".tar.gz", err
}

func tarred(files []file, date time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, f := range sorted(files) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: date}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return buffer.Bytes(), err
}

func gzipped(content []byte) ([]byte, error) {
	var buffer bytes.Buffer
	w, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return buffer.Bytes(), err
}

func zipped(files []file, date time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	w := zip.NewWriter(&buffer)
	for _, f := range sorted(files) {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date.UTC()}
		header.SetMode(f.mode)
		entry, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(entry, bytes.NewReader(f.content)); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return buffer.Bytes(), err
}

func checksum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
