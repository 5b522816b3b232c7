// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Dist builds what a release publishes: archives of the command with its completions, manual pages and licences, their checksums and bills
// of materials, the manifests of package managers, and images in the OCI layout. It runs in a folder of the repository. The same commit
// makes the same files, with the same version of Go.
//
// Usage: dist [-platforms linux/amd64,windows/arm64] [-version v1.2.3] FOLDER
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// allPlatforms are those of a release.
const allPlatforms = "darwin/amd64,darwin/arm64,linux/amd64,linux/arm64,windows/amd64,windows/arm64"

// options are what the command line says.
type options struct {
	root, out, goCommand string
	version              string
	platforms            []platform
}

func main() {
	platforms := flag.String("platforms", allPlatforms, "the platforms")
	version := flag.String("version", "", "the version, which must be the one that cmd/corbel/go.mod requires")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: dist [-platforms LIST] [-version VERSION] FOLDER")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := dist(ctx, options{root: ".", out: flag.Arg(0), goCommand: goCommand(), version: *version, platforms: parsePlatforms(*platforms)})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// goCommand returns the go command, by default that of PATH.
func goCommand() string { return cmp.Or(os.Getenv("GO"), "go") }

func parsePlatforms(list string) []platform {
	var found []platform
	for name := range strings.SplitSeq(list, ",") {
		system, architecture, _ := strings.Cut(name, "/")
		found = append(found, platform{system, architecture})
	}
	return found
}

// output is the folder that is published.
type output struct {
	folder string
	// sums are the lines of the checksums.
	sums []string
}

// add writes a file, and records its checksum.
func (o *output) add(name string, content []byte) error {
	sum := checksum(content)
	o.sums = append(o.sums, sum+"  "+name+"\n")
	fmt.Printf("  %s  %d kB\n", name, len(content)/1000)
	return os.WriteFile(filepath.Join(o.folder, name), content, 0o644)
}

// dist writes the folder.
func dist(ctx context.Context, o options) error {
	if entries, _ := os.ReadDir(o.out); len(entries) > 0 {
		return fmt.Errorf("the folder %s is not empty: name a new one", o.out)
	}
	root, err := filepath.Abs(o.root)
	if err != nil {
		return err
	}
	b, err := newBuilder(ctx, root, o.goCommand)
	if err != nil {
		return err
	}
	defer b.close()
	if o.version != "" && o.version != b.version {
		return fmt.Errorf("cmd/corbel/go.mod requires %s %s, not %s: write the version there first", libraryModule, b.version, o.version)
	}
	fmt.Printf("corbel %s, revision %s of %s\n", b.version, b.revision, b.date)
	out := &output{folder: o.out}
	if err := os.MkdirAll(filepath.Join(o.out, "images"), 0o755); err != nil {
		return err
	}
	containers, err := b.archives(ctx, out, o.platforms)
	if err != nil {
		return err
	}
	if err := b.images(ctx, out, containers); err != nil {
		return err
	}
	slices.SortFunc(out.sums, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	return os.WriteFile(filepath.Join(o.out, "SHA256SUMS"), []byte(strings.Join(out.sums, "")), 0o644)
}

// archives writes an archive of the command for each platform, and what belongs to them. It returns the binaries that images can have.
func (b *builder) archives(ctx context.Context, out *output, platforms []platform) ([]*binary, error) {
	manual, err := manual(b.release)
	if err != nil {
		return nil, err
	}
	licence, err := os.ReadFile(filepath.Join(b.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	var containers []*binary
	var archives []archive
	for _, on := range platforms {
		fmt.Println("• corbel for", on)
		built, err := b.build(ctx, b.command(), on)
		if err != nil {
			return nil, err
		}
		if on.os == "linux" {
			containers = append(containers, built)
		}
		program := "corbel"
		if on.os == "windows" {
			program += ".exe"
		}
		files := slices.Concat([]file{{program, 0o755, built.content}, {"LICENSE", 0o644, licence}}, manual, licenceFiles(built.modules))
		packed, ending, err := pack(on, files, b.date)
		if err != nil {
			return nil, err
		}
		bill, err := bill(built, b.release)
		if err != nil {
			return nil, err
		}
		name := b.nameOf(built)
		archives = append(archives, archive{on.os, on.arch, sourceURL + "/releases/download/" + b.version + "/" + name + ending, checksum(packed), program})
		if err := errors.Join(out.add(name+ending, packed), out.add(name+".cdx.json", bill)); err != nil {
			return nil, err
		}
	}
	files, err := manifests(b.release, archives)
	for _, f := range files {
		err = errors.Join(err, out.add(f.name, f.content))
	}
	return containers, err
}

// images writes the images of the command and of two operators, for the platforms of the binaries.
func (b *builder) images(ctx context.Context, out *output, command []*binary) error {
	if len(command) == 0 {
		return nil // no platform of Linux is built
	}
	scaffolded, err := b.scaffold(ctx)
	if err != nil {
		return err
	}
	images := map[string][]*binary{"corbel": command}
	for _, p := range []program{b.shop(), scaffolded} {
		for _, c := range command {
			fmt.Println("•", p.name, "for", c.platform)
			built, err := b.build(ctx, p, c.platform)
			if err != nil {
				return err
			}
			bill, err := bill(built, b.release)
			if err != nil {
				return err
			}
			// The operators are examples, which are not published: their bills are beside the images, and not among the files of the release.
			if err := os.WriteFile(filepath.Join(out.folder, "images", b.nameOf(built)+".cdx.json"), bill, 0o644); err != nil {
				return err
			}
			images[p.name] = append(images[p.name], built)
		}
	}
	for _, name := range []string{"corbel", "shop", scaffolded.name} {
		entrypoint := "operator"
		if name == "corbel" {
			entrypoint = name
		}
		folder := filepath.Join(out.folder, "images", name)
		digest, err := writeImage(folder, entrypoint, b.release, images[name])
		if err != nil {
			return err
		}
		fmt.Printf("  images/%s:%s@%s\n", name, b.version, digest)
	}
	return nil
}

// nameOf returns the names of the files of a binary, without their endings.
func (b *builder) nameOf(built *binary) string {
	return strings.Join([]string{built.name, b.version, built.os, built.arch}, "_")
}
