// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/slice"
)

// TestTheSameCommitMakesTheSameFiles builds a release twice, in two clones, one after the other, and compares all files. Both
// runs share the build cache: the go command finds there what the first run compiled only if nothing of a folder is in it. Then the files
// are checked as users get them.
func TestTheSameCommitMakesTheSameFiles(t *testing.T) {
	if !slice.FromEnvironment(t).Whole() {
		t.Skip("it builds a release twice, which takes minutes: make test-all runs it, and so does CORBEL_SLICE=1/1")
	}
	on := platform{runtime.GOOS, runtime.GOARCH}
	var outputs []string
	source := "../../../.."
	for i := range 2 {
		clone, out := filepath.Join(t.TempDir(), strings.Repeat("deeper/", i)+"corbel"), filepath.Join(t.TempDir(), "dist")
		if output, err := exec.CommandContext(t.Context(), "git", "clone", "--quiet", source, clone).CombinedOutput(); err != nil {
			t.Fatalf("git clone: %v\n%s", err, output)
		}
		source = clone // which stays at its commit
		check.NoError(t, dist(t.Context(), options{root: clone, out: out, goCommand: goCommand(), platforms: []platform{on}}))
		outputs = append(outputs, out)
	}
	first, second := contents(t, outputs[0]), contents(t, outputs[1])
	for name, text := range first {
		if !bytes.Equal(text, second[name]) {
			t.Errorf("the runs wrote different files %s", name)
		}
	}
	check.Same(t, len(first), len(second))

	var checksums strings.Builder
	for line := range strings.Lines(string(first["SHA256SUMS"])) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		check.SameNamed(t, name, checksum(first[name]), sum)
		checksums.WriteString(name + "\n")
	}
	b := &builder{root: "../../../..", environment: os.Environ()}
	check.NoError(t, b.describe(t.Context()))
	version := b.version
	name := "corbel_" + version + "_" + on.os + "_" + on.arch
	check.Contains(t, checksums.String(), name+".tar.gz\n", name+".cdx.json\n", "corbel.yaml\n", "corbel.rb\n")
	if strings.Contains(checksums.String(), "shop") {
		t.Errorf("the checksums of the release name an example:\n%s", &checksums)
	}
	_, files := tarEntries(t, first[name+".tar.gz"])
	for _, want := range []string{"LICENSE", "licenses/std/LICENSE", "licenses/k8s.io/client-go/LICENSE", "licenses/" + commandModule + "/LICENSE", "man/man1/corbel-plan.1", "completions/_corbel"} {
		if len(files[want]) == 0 {
			t.Errorf("the archive has no %s", want)
		}
	}
	program := filepath.Join(t.TempDir(), "corbel")
	check.NoError(t, os.WriteFile(program, files["corbel"], 0o755))
	printed := check.Must(exec.CommandContext(t.Context(), program, "version").Output())(t)
	check.Contains(t, string(printed), "version    "+version+"\n", "platform   "+on.String()+"\n")
	check.Contains(t, string(first["corbel.rb"]), checksum(first[name+".tar.gz"]))
	if on.os != "linux" {
		return // no images
	}
	for _, section := range check.Must(elf.NewFile(bytes.NewReader(files["corbel"])))(t).Progs {
		if section.Type == elf.PT_INTERP {
			t.Error("the program is linked dynamically")
		}
	}
	for image, entrypoint := range map[string]string{"corbel": "corbel", "shop": "operator", "shop-operator": "operator"} {
		read := readImage(t, filepath.Join(outputs[0], "images", image), version)[on.String()]
		if bill := filepath.Join("images", image+"_"+version+"_"+on.os+"_"+on.arch+".cdx.json"); image != "corbel" && len(first[bill]) == 0 {
			t.Errorf("there is no bill of materials %s", bill)
		}
		check.SameNamed(t, image, "/"+entrypoint, strings.Join(read.config.Config.Entrypoint, " "))
		operator := filepath.Join(t.TempDir(), "program")
		check.NoError(t, os.WriteFile(operator, read.files[entrypoint], 0o755))
		if output, err := exec.CommandContext(t.Context(), operator, "version").CombinedOutput(); err != nil {
			t.Errorf("the program of the image %s does not run: %v\n%s", image, err, output)
		}
	}
}

// contents returns all files below a folder.
func contents(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	check.NoError(t, filepath.WalkDir(folder, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative := check.Must(filepath.Rel(folder, name))(t)
		found[relative], err = os.ReadFile(name)
		return err
	}))
	return found
}
