// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the user and the group of the processes of an image: not root, and the one of the projects that corbel init makes.
const user = "65532:65532"

// layout is a folder in the image layout of the Open Container Initiative.
type layout struct{ folder string }

// writeImage writes an image for all platforms of the binaries into a folder, by the version as its tag, and returns its digest.
func writeImage(folder, entrypoint string, r release, binaries []*binary) (digest.Digest, error) {
	l := layout{folder}
	if err := os.MkdirAll(filepath.Join(folder, ocispec.ImageBlobsDir, digest.Canonical.String()), 0o755); err != nil {
		return "", err
	}
	annotations := map[string]string{
		ocispec.AnnotationTitle: binaries[0].name, ocispec.AnnotationVersion: r.version, ocispec.AnnotationRevision: r.revision,
		ocispec.AnnotationCreated: r.date.Format(time.RFC3339), ocispec.AnnotationSource: sourceURL, ocispec.AnnotationLicenses: "Apache-2.0",
	}
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Annotations: annotations}
	for _, built := range binaries {
		files := append(licenceFiles(built.modules), file{entrypoint, 0o755, built.content}, roots())
		manifest, err := l.addManifest(files, built.platform, "/"+entrypoint, annotations)
		if err != nil {
			return "", err
		}
		index.Manifests = append(index.Manifests, manifest)
	}
	image, err := l.addJSON(ocispec.MediaTypeImageIndex, index)
	if err != nil {
		return "", err
	}
	named := image
	named.Annotations = map[string]string{ocispec.AnnotationRefName: r.version}
	top := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{named}}
	return image.Digest, errors.Join(
		l.write(ocispec.ImageIndexFile, top),
		l.write(ocispec.ImageLayoutFile, ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion}),
	)
}

// addManifest adds an image of one layer for a platform.
func (l layout) addManifest(files []file, on platform, entrypoint string, labels map[string]string) (ocispec.Descriptor, error) {
	none := ocispec.Descriptor{}
	date, err := time.Parse(time.RFC3339, labels[ocispec.AnnotationCreated])
	if err != nil {
		return none, err
	}
	content, err := tarred(files, date)
	if err != nil {
		return none, err
	}
	compressed, err := gzipped(content)
	if err != nil {
		return none, err
	}
	layer, err := l.addBlob(ocispec.MediaTypeImageLayerGzip, compressed)
	if err != nil {
		return none, err
	}
	runsOn := ocispec.Platform{OS: on.os, Architecture: on.arch}
	config, err := l.addJSON(ocispec.MediaTypeImageConfig, ocispec.Image{
		Created: &date, Platform: runsOn,
		Config:  ocispec.ImageConfig{User: user, Entrypoint: []string{entrypoint}, Labels: labels},
		RootFS:  ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(content)}},
		History: []ocispec.History{{Created: &date, CreatedBy: "make dist"}},
	})
	if err != nil {
		return none, err
	}
	manifest, err := l.addJSON(ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: config, Layers: []ocispec.Descriptor{layer}, Annotations: labels,
	})
	manifest.Platform = &runsOn
	return manifest, err
}

func (l layout) addJSON(mediaType string, value any) (ocispec.Descriptor, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return l.addBlob(mediaType, content)
}

func (l layout) addBlob(mediaType string, content []byte) (ocispec.Descriptor, error) {
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
	return d, os.WriteFile(filepath.Join(l.folder, ocispec.ImageBlobsDir, d.Digest.Algorithm().String(), d.Digest.Encoded()), content, 0o644)
}

func (l layout) write(name string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(l.folder, name), content, 0o644)
}

// roots returns the certificates of the authorities that Mozilla trusts, at the place where Go looks for them: an image from scratch has none,
// and registries are asked by TLS. Authorities that Mozilla trusts within limits are left out, because a file cannot express the limits. The
// authors of Go publish the list under the licence of the standard library, which each image has.
func roots() file {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes everything
		}
	}
	return file{"etc/ssl/certs/ca-certificates.crt", 0o644, out.Bytes()}
}
