// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

const changelog = `# Changelog

## [Unreleased]

## [1.1.0] - 2026-01-02

## [1.0.0] - 2026-01-01

### Added

- One.

## [0.9.0] - 2025-12-31

- Zero.

[1.0.0]: https://example.com/1.0.0
`

// clone is a repository with the scripts of a release, and nothing else of this one.
type clone struct {
	t      *testing.T
	folder string
}

func newClone(t *testing.T) clone {
	t.Helper()
	c := clone{t, t.TempDir()}
	files := map[string]string{
		"CHANGELOG.md": changelog, "go.mod": "module example.com/a\n", "hack/controlplane/go.mod": "module example.com/a/hack/controlplane\n",
		"cmd/corbel/go.mod":           "module example.com/a/cmd/corbel\n\nrequire (\n\tgithub.com/corbel-run/corbel v1.0.0\n)\n",
		"cmd/corbel/hack/dist/go.mod": "\tgithub.com/corbel-run/corbel v1.0.0\n", "test/browser/go.mod": "\tgithub.com/corbel-run/corbel v1.0.0\n", "test/mount/go.mod": "\tgithub.com/corbel-run/corbel v1.0.0\n",
		"go.work": "replace github.com/corbel-run/corbel v1.0.0 => .\n",
	}
	for _, name := range []string{"hack/release.sh", "hack/release-notes.sh"} {
		content := check.Must(os.ReadFile(filepath.Join(root, name)))(t)
		files[name] = string(content)
	}
	for name, content := range files {
		c.write(name, content)
	}
	c.git("init", "--quiet", "--initial-branch=main")
	c.git("add", ".")
	c.git("commit", "--quiet", "--message=start")
	return c
}

func (c clone) write(name, content string) {
	c.t.Helper()
	path := filepath.Join(c.folder, name)
	check.NoError(c.t, os.MkdirAll(filepath.Dir(path), 0o755))
	check.NoError(c.t, os.WriteFile(path, []byte(content), 0o755))
}

// run returns what a program prints, on both streams, in the folder of the clone. The configuration of
// the user of this machine does not count.
func (c clone) run(program string, arguments ...string) (string, error) {
	command := exec.Command(program, arguments...)
	command.Dir = c.folder
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := command.CombinedOutput()
	return string(out), err
}

func (c clone) git(arguments ...string) string {
	c.t.Helper()
	out, err := c.run("git", arguments...)
	if err != nil {
		c.t.Fatalf("git %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return out
}

func TestAReleaseIsTagged(t *testing.T) {
	c := newClone(t)
	out, err := c.run("hack/release.sh", "v1.0.0")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	check.EqualNamed(t, "tags", "cmd/corbel/v1.0.0\nhack/controlplane/v1.0.0\nv1.0.0\n", c.git("tag"))
	if want := "git push --atomic origin main v1.0.0 cmd/corbel/v1.0.0 hack/controlplane/v1.0.0\n"; !strings.Contains(out, want) {
		t.Errorf("it does not say what to push:\n%s", out)
	}
	if out, err := c.run("hack/release.sh", "v1.0.0"); err == nil || !strings.Contains(out, "the tag v1.0.0 exists") {
		t.Errorf("a version was released twice: %v\n%s", err, out)
	}
}

func TestAReleaseIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		version string
		prepare func(clone)
		want    []string
	}{
		"no version":                              {"", nil, []string{"the version is missing"}},
		"a version without v":                     {"1.0.0", nil, []string{"the version is 1.0.0: it must be"}},
		"a number with a zero before it":          {"v1.01.0", nil, []string{"it must be a semantic version"}},
		"an option in place of a version":         {"--force", nil, []string{"it must be a semantic version"}},
		"a version without a section":             {"v1.2.0", nil, []string{"has no heading ## [1.2.0]"}},
		"a command that requires another version": {"v0.9.0", nil, []string{"cmd/corbel/go.mod requires another version of the root module: write v0.9.0", "go.work requires"}},
		"a section with nothing in it":            {"v1.1.0", nil, []string{"says nothing about 1.1.0"}},
		"dots that match anything":                {"v1.0.0-rc.1", nil, []string{"has no heading ## [1.0.0-rc.1]"}},
		"a major version without a module path":   {"v2.0.0", nil, []string{"example.com/a has no version v2.0.0", "example.com/a/hack/controlplane has no version"}},
		"another branch, and a file that is not tracked": {"v1.0.0", func(c clone) {
			c.git("switch", "--quiet", "--create=next")
			c.write("new", "")
		}, []string{"next is checked out", "files are changed or not tracked"}},
		"no branch": {"v1.0.0", func(c clone) { c.git("switch", "--quiet", "--detach") }, []string{"a commit without a branch is checked out"}},
		"a tag of the nested module that exists": {"v1.0.0", func(c clone) {
			c.git("tag", "hack/controlplane/v1.0.0")
		}, []string{"the tag hack/controlplane/v1.0.0 exists"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClone(t)
			if test.prepare != nil {
				test.prepare(c)
			}
			before := c.git("tag")
			out, err := c.run("hack/release.sh", test.version)
			if err == nil {
				t.Fatalf("it was released:\n%s", out)
			}
			check.Contains(t, out, test.want...)
			check.SameNamed(t, "tags were made", before, c.git("tag"))
		})
	}
}

func TestTheTextOfAReleaseIsItsSectionOfTheChangelog(t *testing.T) {
	c := newClone(t)
	for version, want := range map[string]string{"v1.0.0": "### Added\n\n- One.\n", "v0.9.0": "- Zero.\n"} {
		if out, err := c.run("hack/release-notes.sh", version); err != nil || out != want {
			t.Errorf("%s: got %q and the error %v, want %q", version, out, err, want)
		}
	}
	if out, err := c.run("hack/release-notes.sh", "v1.1.0"); err == nil || !strings.Contains(out, "CHANGELOG.md has no section") {
		t.Errorf("an empty section is no error: %v\n%s", err, out)
	}
}

// TestTheSupportedVersionsAreThoseOfTheModules compares the table of RELEASING.md with the files that
// it names.
func TestTheSupportedVersionsAreThoseOfTheModules(t *testing.T) {
	read := func(name string) string {
		content := check.Must(os.ReadFile(filepath.Join(root, name)))(t)
		return string(content)
	}
	document := read("RELEASING.md")
	for _, row := range []struct{ file, version, want string }{
		{"go.mod", `(?m)^go ([0-9]+\.[0-9]+)`, "| Go | %s |"},
		{"go.mod", `sigs\.k8s\.io/controller-runtime (v[0-9]+\.[0-9]+)`, "| controller-runtime | %s |"},
		{"go.mod", `k8s\.io/client-go v0\.([0-9]+)`, "| v0.%[1]s, those of Kubernetes 1.%[1]s |"},
		{"hack/controlplane.mk", `CONTROLPLANE_VERSIONS := (v[0-9]+\.[0-9]+)`, "| API server that the tests run against | %s |"},
	} {
		match := regexp.MustCompile(row.version).FindStringSubmatch(read(row.file))
		if match == nil {
			t.Errorf("%s has no version like %s", row.file, row.version)
			continue
		}
		want := strings.NewReplacer("%s", match[1], "%[1]s", match[1]).Replace(row.want)
		if !strings.Contains(document, want) {
			t.Errorf("RELEASING.md has no row with %q, as %s says", want, row.file)
		}
	}
}

// TestTheVersionsOfTheControlPlaneAreThoseOfItsFiles compares the versions that the tests know with the requirements
// of the control plane, the documents, and the version that samples are rendered for.
func TestTheVersionsOfTheControlPlaneAreThoseOfItsFiles(t *testing.T) {
	read := func(name string) string { return string(check.Must(os.ReadFile(filepath.Join(root, name)))(t)) }
	match := regexp.MustCompile(`CONTROLPLANE_VERSIONS := (.*)`).FindStringSubmatch(read("hack/controlplane.mk"))
	if match == nil {
		t.Fatal("hack/controlplane.mk has no CONTROLPLANE_VERSIONS")
	}
	for i, version := range strings.Fields(match[1]) {
		wanted := map[string]string{"RELEASING.md": "| " + version + " |"}
		if i == 0 {
			wanted["hack/controlplane/go.mod"] = "k8s.io/kubernetes " + version + "\n"
			wanted["cmd/corbel/internal/scaffold/project.go"] = `kubeVersion = "` + version[1:] + `"`
		} else {
			wanted["hack/controlplane/versions/"+version+".mod"] = "k8s.io/kubernetes " + version + "\n"
		}
		for file, text := range wanted {
			if !strings.Contains(read(file), text) {
				t.Errorf("%s has no %q, but hack/controlplane.mk has %s: make controlplane-mod writes the requirements", file, text, version)
			}
		}
	}
}
