// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/test/check"
)

// aRelease is a release of the tests.
func aRelease() release {
	return release{version: "v1.2.3", revision: "0123abc", date: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)}
}

// aBinary is a binary of the tests.
func aBinary(on platform) *binary {
	return &binary{
		program: program{name: "shop"}, platform: on, content: []byte("the program for " + on.String()), info: &debug.BuildInfo{},
		modules: []module{
			{path: "example.com/shop", version: "v1.2.3", ids: []string{"Apache-2.0"}, licences: []file{{"LICENSE", 0o644, []byte("terms")}}},
			{path: "example.com/old", version: "v2.0.0+incompatible", ids: []string{"BSD-3-Clause", "MIT"}},
			{path: standardLibrary, version: "1.26.0", ids: []string{"BSD-3-Clause"}},
		},
	}
}

// entry is an entry of an archive, without its content.
type entry struct {
	Name  string
	Mode  os.FileMode
	Date  string
	Owner string
}

func tarEntries(t *testing.T, packed []byte) ([]entry, map[string][]byte) {
	t.Helper()
	var entries []entry
	contents := map[string][]byte{}
	unpacked := check.Must(gzip.NewReader(bytes.NewReader(packed)))(t)
	for r := tar.NewReader(unpacked); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries, contents
		}
		check.NoError(t, err)
		owner := ""
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" {
			owner = h.Uname + h.Gname + "?"
		}
		entries = append(entries, entry{h.Name, h.FileInfo().Mode(), h.ModTime.UTC().Format(time.RFC3339), owner})
		contents[h.Name] = check.Must(io.ReadAll(r))(t)
	}
}

func zipEntries(t *testing.T, packed []byte) []entry {
	t.Helper()
	var entries []entry
	for _, f := range check.Must(zip.NewReader(bytes.NewReader(packed), int64(len(packed))))(t).File {
		entries = append(entries, entry{f.Name, f.Mode(), f.Modified.UTC().Format(time.RFC3339), ""})
	}
	return entries
}

func TestAnArchiveDependsOnItsFilesAlone(t *testing.T) {
	one := []file{{"corbel", 0o755, []byte("program")}, {"LICENSE", 0o644, []byte("terms")}}
	other := []file{one[1], one[0]}
	want := []entry{{"LICENSE", 0o644, "2026-01-02T03:04:06Z", ""}, {"corbel", 0o755, "2026-01-02T03:04:06Z", ""}}
	for _, system := range []string{"linux", "windows"} {
		on := platform{system, "amd64"}
		packed, ending, err := pack(on, one, aRelease().date)
		check.NoError(t, err)
		again, _, err := pack(on, other, aRelease().date.In(time.FixedZone("elsewhere", 3600)))
		check.NoError(t, err)
		if !bytes.Equal(packed, again) {
			t.Errorf("%s: the order of the files, or the time zone, changes the archive", on)
		}
		if system == "windows" {
			check.Same(t, ".zip", ending)
			check.Equal(t, want, zipEntries(t, packed))
			continue
		}
		check.Same(t, ".tar.gz", ending)
		entries, _ := tarEntries(t, packed)
		check.Equal(t, want, entries)
	}
}

func TestTheLicencesAreThoseOfTheLinkedPackages(t *testing.T) {
	root := t.TempDir()
	mit := "MIT License\n\nPermission is hereby granted, free of charge"
	for name, text := range map[string]string{
		"LICENSE": mit, "license.go": "package a", "linked/NOTICE.txt": "a notice", "linked/deeper/a.go": "package deeper", "other/COPYING": "terms of what is not linked",
	} {
		check.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		check.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	found, err := inModule{root, []string{filepath.Join(root, "linked", "deeper"), root}}.terms()
	check.NoError(t, err)
	check.Equal(t, []file{{"LICENSE", 0o644, []byte(mit)}, {"linked/NOTICE.txt", 0o644, []byte("a notice")}}, found, cmp.AllowUnexported(file{}))

	licence := check.Must(os.ReadFile("../../../../LICENSE"))(t)
	for _, files := range [][]file{{{"LICENSE", 0o644, licence}}, {{"NOTICE", 0o644, []byte("a notice")}, {"forked/LICENSE", 0o644, licence}}} {
		check.Equal(t, []string{"Apache-2.0"}, check.Must(identify(files))(t))
	}
	additional := append(slices.Clone(licence), bytes.Repeat([]byte("Nobody may sell it without asking the author. "), 200)...)
	for want, files := range map[string][]file{
		"LICENSE has terms of no known licence": {{"LICENSE", 0o644, additional}},
		"there is no licence file":              {{"NOTICE", 0o644, []byte("a notice")}},
	} {
		_, err := identify(files)
		check.Fails(t, err, want)
	}
}

func TestTheBillNamesWhatIsLinked(t *testing.T) {
	built := aBinary(platform{"linux", "arm64"})
	text := check.Must(bill(built, aRelease()))(t)
	var bom cdx.BOM
	check.NoError(t, cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom))
	check.Same(t, "", bom.SerialNumber)
	check.Same(t, "2026-01-02T03:04:06Z", bom.Metadata.Timestamp)
	check.Same(t, "pkg:golang/example.com/shop@v1.2.3?goarch=arm64&goos=linux", bom.Metadata.Component.PackageURL)
	check.Equal(t, []cdx.Hash{{Algorithm: "SHA-256", Value: checksum(built.content)}}, *bom.Metadata.Component.Hashes)
	var found []string
	for _, c := range *bom.Components {
		line := c.PackageURL
		for _, l := range *c.Licenses {
			line += " " + l.License.ID
		}
		found = append(found, line)
	}
	check.Equal(t, []string{"pkg:golang/example.com/old@v2.0.0%2Bincompatible BSD-3-Clause MIT", "pkg:golang/std@1.26.0 BSD-3-Clause"}, found)
	check.Equal(t, []string{"pkg:golang/example.com/old@v2.0.0%2Bincompatible", "pkg:golang/std@1.26.0"}, *(*bom.Dependencies)[0].Dependencies)
}

// image is a part of an image as a client of registries reads it.
type image struct {
	config  ocispec.Image
	entries []entry
	files   map[string][]byte
}

// readImage reads an image from a layout, by platform. The client checks digests and sizes.
func readImage(t *testing.T, folder, tag string) map[string]image {
	t.Helper()
	store := check.Must(oci.NewFromFS(t.Context(), os.DirFS(folder)))(t)
	fetch := func(d ocispec.Descriptor, into any) []byte {
		text := check.Must(content.FetchAll(t.Context(), store, d))(t)
		if into != nil {
			check.NoError(t, json.Unmarshal(text, into))
		}
		return text
	}
	var index ocispec.Index
	fetch(check.Must(store.Resolve(t.Context(), tag))(t), &index)
	found := map[string]image{}
	for _, d := range index.Manifests {
		var manifest ocispec.Manifest
		var i image
		fetch(d, &manifest)
		fetch(manifest.Config, &i.config)
		layer := fetch(manifest.Layers[0], nil)
		i.entries, i.files = tarEntries(t, layer)
		unpacked := check.Must(io.ReadAll(check.Must(gzip.NewReader(bytes.NewReader(layer)))(t)))(t)
		check.Equal(t, []digest.Digest{digest.FromBytes(unpacked)}, i.config.RootFS.DiffIDs)
		check.Same(t, d.Platform.OS+"/"+d.Platform.Architecture, i.config.OS+"/"+i.config.Architecture)
		found[d.Platform.OS+"/"+d.Platform.Architecture] = i
	}
	return found
}

func TestAnImageIsReadBack(t *testing.T) {
	folder := t.TempDir()
	binaries := []*binary{aBinary(platform{"linux", "amd64"}), aBinary(platform{"linux", "arm64"})}
	first := check.Must(writeImage(folder, "operator", aRelease(), binaries))(t)
	check.Same(t, first, check.Must(writeImage(t.TempDir(), "operator", aRelease(), binaries))(t))
	images := readImage(t, folder, "v1.2.3")
	check.Same(t, 2, len(images))
	for _, built := range binaries {
		i := images[built.platform.String()]
		check.Same(t, "65532:65532", i.config.Config.User)
		check.Equal(t, []string{"/operator"}, i.config.Config.Entrypoint)
		check.Equal(t, map[string]string{
			"org.opencontainers.image.title": "shop", "org.opencontainers.image.version": "v1.2.3", "org.opencontainers.image.revision": "0123abc",
			"org.opencontainers.image.created": "2026-01-02T03:04:06Z", "org.opencontainers.image.source": "https://github.com/corbel-run/corbel",
			"org.opencontainers.image.licenses": "Apache-2.0",
		}, i.config.Config.Labels)
		check.Equal(t, []entry{
			{"etc/ssl/certs/ca-certificates.crt", 0o644, "2026-01-02T03:04:06Z", ""},
			{"licenses/example.com/shop/LICENSE", 0o644, "2026-01-02T03:04:06Z", ""},
			{"operator", 0o755, "2026-01-02T03:04:06Z", ""},
		}, i.entries)
		check.Same(t, string(built.content), string(i.files["operator"]))
		if !x509.NewCertPool().AppendCertsFromPEM(i.files["etc/ssl/certs/ca-certificates.crt"]) {
			t.Error("the image has no certificates of authorities")
		}
	}
}

func TestThePackageManagersGetTheArchives(t *testing.T) {
	files := check.Must(manifests(aRelease(), []archive{
		{"darwin", "arm64", "https://example.com/d.tar.gz", "d1", "corbel"},
		{"windows", "amd64", "https://example.com/w.zip", "a2", "corbel.exe"},
	}))(t)
	var plugin struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version   string
			Platforms []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
				Files            []struct{ From, To string }
			}
		}
	}
	check.NoError(t, yaml.Unmarshal(files[0].content, &plugin))
	check.Same(t, "corbel v1.2.3", plugin.Metadata.Name+" "+plugin.Spec.Version)
	check.Same(t, 2, len(plugin.Spec.Platforms))
	windows := plugin.Spec.Platforms[1]
	check.Equal(t, map[string]string{"os": "windows", "arch": "amd64"}, windows.Selector.MatchLabels)
	check.Same(t, "https://example.com/w.zip a2 corbel.exe corbel.exe", strings.Join([]string{windows.URI, windows.SHA256, windows.Bin, windows.Files[0].From}, " "))

	formula := string(files[1].content)
	check.Contains(t, formula, `version "1.2.3"`, "  on_macos do\n    on_arm do\n      url \"https://example.com/d.tar.gz\"\n      sha256 \"d1\"\n    end\n  end\n")
	if strings.Contains(formula, "w.zip") {
		t.Errorf("the formula names an archive for Windows:\n%s", formula)
	}
}

func TestTheManualHasEachCommand(t *testing.T) {
	files := map[string]string{}
	for _, f := range check.Must(manual(aRelease()))(t) {
		files[f.name] = string(f.content)
	}
	check.Contains(t, files["man/man1/corbel-adopt-helm.1"], "corbel v1.2.3", "Jan 2026", "corbel adopt helm")
	for _, name := range []string{"completions/corbel.bash", "completions/_corbel", "completions/corbel.fish", "completions/corbel.ps1"} {
		check.Contains(t, files[name], "__complete")
	}
	home := check.Must(os.UserHomeDir())(t)
	for name, text := range files {
		if strings.Contains(text, home+"/") {
			t.Errorf("%s names the home directory of the user who built it", name)
		}
	}
}
