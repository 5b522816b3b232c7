// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/cmd/corbel/internal/cli"
	"github.com/corbel-run/corbel/cmd/corbel/internal/command/remote"
	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/slice"
)

// asCorbel is the variable that makes this program the command, which need not be built then.
const asCorbel = "CORBEL_TEST_AS_CORBEL"

func TestMain(m *testing.M) {
	if os.Getenv(asCorbel) == "" {
		os.Exit(m.Run())
	}
	os.Exit(Main())
}

// corbel runs the command, and returns what it prints.
func corbel(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command, out := New(), &bytes.Buffer{}
	command.SetArgs(args)
	command.SetOut(out)
	command.SetErr(out)
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

// shopChart is the chart of the example.
func shopChart(t *testing.T) string {
	t.Helper()
	chart := check.Must(filepath.Abs("../../../../examples/shop/chart"))(t)
	return chart
}

func TestBadInputIsExplainedAndNothingIsWritten(t *testing.T) {
	chart := shopChart(t)
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"no arguments":       {[]string{"init"}, []string{"FOLDER is missing", "name one source"}},
		"two sources":        {[]string{"init", "shop", "--go", "--from-chart", chart}, []string{"name one source"}},
		"no chart":           {[]string{"init", "shop", "--from-chart", "none", "--kind", "Shop", "--group", "shop.example.com"}, []string{"there is no file or folder none"}},
		"several mistakes":   {[]string{"init", "shop", "--from-chart", chart, "--kind", "shop", "--group", "shop"}, []string{"--kind", "--group"}},
		"an unknown value":   {[]string{"init", "shop", "--from-chart", chart, "--kind", "Shop", "--group", "shop.example.com", "--field", "image,replica"}, []string{"replica", "replicas"}},
		"a cluster kind":     {[]string{"init", "shop", "--from-chart", chart, "--kind", "Shop", "--group", "shop.example.com", "--namespaced"}, []string{"--namespaced", "CustomResourceDefinition"}},
		"no registry":        {[]string{"init", "shop", "--from-chart", "oci://127.0.0.1:1/shop", "--kind", "Shop", "--group", "shop.example.com"}, []string{"oci://127.0.0.1:1/shop cannot be fetched", "check the address and the network"}},
		"remote manifests":   {[]string{"init", "shop", "--from-yaml", "https://example.com/shop", "--kind", "Shop", "--group", "shop.example.com"}, []string{"only charts are fetched"}},
		"no project":         {[]string{"init", "--update"}, []string{"is not a project of corbel init"}},
		"a fixed flag":       {[]string{"init", "--update", "--kind", "Shop"}, []string{"--kind cannot be changed by --update"}},
		"a remote update":    {[]string{"init", "--update", "--from-chart", "oci://127.0.0.1:1/shop"}, []string{"cannot be fetched"}},
		"no table of fields": {[]string{"fields"}, []string{"is not a project of corbel init"}},
		"nothing to run":     {[]string{"dev"}, []string{"is not the project of an operator"}},
		"a bad checkout":     {[]string{"init", "shop", "--go", "--corbel", "."}, []string{"is no checkout"}},
		"an unknown command": {[]string{"initialise"}, []string{"unknown command"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			t.Chdir(folder)
			_, err := corbel(t, test.args...)
			check.Fails(t, err, test.want...)
			if text := cli.Explain(err); strings.Contains(text, "API server") {
				t.Errorf("no API server is asked: %s", text)
			}
			if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
				t.Errorf("left: %v, %v", entries, err)
			}
		})
	}
}

func TestAFetchedChartIsASource(t *testing.T) {
	packed := []byte("\x1f\x8b and more")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packed) }))
	defer server.Close()
	folder, progress := t.TempDir(), &bytes.Buffer{}
	f := initFlags{chart: server.URL + "/shop-1.2.0.tgz?token=secret", remote: remote.Client{PlainHTTP: true}}
	source, err := f.source()
	check.NoError(t, err)
	if source, err = f.fetch(t.Context(), progress, source, folder); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(source.Path); err != nil || !bytes.Equal(text, packed) {
		t.Errorf("got %q, %v", text, err)
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(packed))
	want := scaffold.Source{Form: scaffold.FormChart, Path: filepath.Join(folder, "chart.tgz"), Origin: server.URL + "/shop-1.2.0.tgz", Digest: digest}
	if source != want || !strings.Contains(progress.String(), digest) {
		t.Errorf("got %+v, and printed %q", source, progress)
	}
}

// The command fetches from a repository; a go that does nothing takes the place of the toolchain.
func TestInitFetchesTheSubchartsThatAChartLacks(t *testing.T) {
	folder, bin := t.TempDir(), t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		check.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		check.NoError(t, os.WriteFile(name, []byte(text), mode))
	}
	write(filepath.Join(bin, "go"), "#!/bin/sh\n", 0o755)
	write(filepath.Join(folder, "db/Chart.yaml"), "apiVersion: v2\nname: db\nversion: 1.2.0\n", 0o644)
	packed := check.Must(exec.CommandContext(t.Context(), "tar", "-C", folder, "-cz", "db").Output())(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/index.yaml" {
			fmt.Fprintf(w, "entries: {db: [{version: 1.2.0, urls: [db.tgz], digest: %x}]}\n", sha256.Sum256(packed))
			return
		}
		_, _ = w.Write(packed)
	}))
	defer server.Close()
	write(filepath.Join(folder, "shop/Chart.yaml"), "apiVersion: v2\nname: shop\nversion: 1.0.0\ndependencies: [{name: db, version: 1.x, repository: '"+server.URL+"'}]\n", 0o644)
	t.Setenv("PATH", bin)
	project := filepath.Join(folder, "shop-operator")
	arguments := []string{"init", project, "--from-chart", filepath.Join(folder, "shop"), "--kind", "Shop", "--group", "shop.example.com"}
	check.Fails(t, check.ErrorOf(corbel(t, arguments...)), "sub-chart db 1.x of chart shop: ", "use https, or --plain-http")
	out := check.Must(corbel(t, append(arguments, "--plain-http")...))(t)
	check.Contains(t, out, "fetch the sub-chart db 1.x of "+server.URL)
	if text := check.Must(os.ReadFile(filepath.Join(project, "chart/charts/db-1.2.0.tgz")))(t); !bytes.Equal(text, packed) {
		t.Errorf("got %q", text)
	}
	check.Contains(t, string(check.Must(os.ReadFile(filepath.Join(project, "corbel.yaml")))(t)), fmt.Sprintf("digest: sha256:%x", sha256.Sum256(packed)))
}

func TestConflictsOfAnUpdateAreAnError(t *testing.T) {
	out := &bytes.Buffer{}
	err := tellUpdate(out, scaffold.Report{Files: []string{"a", "b"}, Conflicts: []string{"b"}})
	if err == nil || out.String() != "changed: a\nconflict: b\nnext: resolve the conflicts, then make generate golden test\n" {
		t.Errorf("got %v, and printed %q", err, out)
	}
	if err := tellUpdate(out, scaffold.Report{}); err != nil {
		t.Error(err)
	}
}

func TestANewProjectNamesTheFilesOfItsAuthor(t *testing.T) {
	out := &bytes.Buffer{}
	tellProject(out, "made/shop", scaffold.Report{Files: []string{"a", "api/v1/shop.go", "deploy/values.yaml", "go.mod"}, Notes: []string{"look"}})
	check.Equal(t, "note: look\nmade/shop has these files, besides its source and what is generated:\n"+
		"  .                    a, go.mod\n  api/v1               shop.go\n  deploy               values.yaml\nnext: cd made/shop && make run\n", out.String())
}

func TestTheReleaseIsTheVersionOfTheLibrary(t *testing.T) {
	other := &debug.Module{Path: "example.com/other", Version: "v3.0.0", Sum: "h1:other"}
	released := &debug.Module{Path: libraryModule, Version: "v1.2.3", Sum: "h1:library"}
	for name, test := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"an installed release":               {debug.BuildInfo{Main: debug.Module{Path: commandModule, Version: "v1.2.3", Sum: "h1:command"}, Deps: []*debug.Module{other, released}}, "v1.2.3"},
		"a release as the tool of a project": {debug.BuildInfo{Main: debug.Module{Path: "example.com/shop", Version: "(devel)"}, Deps: []*debug.Module{released, {Path: commandModule, Version: "v1.2.3", Sum: "h1:command"}}}, "v1.2.3"},
		"a checkout":                         {debug.BuildInfo{Main: debug.Module{Path: commandModule, Version: "(devel)"}, Deps: []*debug.Module{other, {Path: libraryModule, Version: "(devel)"}}}, ""},
		"a checkout without its workspace":   {debug.BuildInfo{Main: debug.Module{Path: commandModule, Version: "(devel)"}, Deps: []*debug.Module{released}}, "v1.2.3"},
		"a project with a checkout":          {debug.BuildInfo{Main: debug.Module{Path: "example.com/shop"}, Deps: []*debug.Module{{Path: libraryModule, Version: "v1.2.3", Replace: &debug.Module{Path: "../corbel"}}}}, ""},
		"a program without the library":      {debug.BuildInfo{Main: debug.Module{Path: commandModule, Version: "v1.2.3", Sum: "h1:command"}, Deps: []*debug.Module{other}}, ""},
	} {
		check.SameNamed(t, name, test.want, releaseIn(&test.info))
	}
}

func TestACheckoutIsTheRootModule(t *testing.T) {
	root := check.Must(filepath.Abs("../../../.."))(t)
	for name, folder := range map[string]string{"by itself": "", "by name": root} {
		library, err := findLibrary(folder)
		if want := (scaffold.Corbel{Version: "v0.0.0", Folder: root}); err != nil || library != want {
			t.Errorf("%s: got %v and the error %v, want %v", name, library, err, want)
		}
	}
	check.Fails(t, check.ErrorOf(findLibrary(filepath.Join(root, "cmd/corbel"))), "is no checkout")
}

// outputLine reports whether a line of a block is one that the command before it prints.
func outputLine(line string) bool { return line != "" && !strings.HasPrefix(line, "$ ") }

// The commands of the tutorial are run, one after the other, and have to print the lines that follow them.
func TestTheTutorial(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	text := check.Must(os.ReadFile("../../../../docs/tutorial.md"))(t)
	assets := check.Must(env.Assets(programs...))(t)
	work, bin := t.TempDir(), t.TempDir()
	check.NoError(t, os.Symlink(check.Must(os.Executable())(t), filepath.Join(bin, "corbel")))
	check.NoError(t, os.CopyFS(filepath.Join(work, "shop"), os.DirFS(shopChart(t))))
	folder, printed, ran := work, "", 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSpace(line)
			if outputLine(line) && !strings.Contains(printed, line) {
				t.Errorf("it does not print %q, but\n%s", line, printed)
			}
			shell, isCommand := strings.CutPrefix(line, "$ ")
			if !isCommand {
				continue
			}
			ran++
			if to, isChange := strings.CutPrefix(shell, "cd "); isChange {
				folder = filepath.Join(folder, to)
				continue
			}
			command := exec.CommandContext(t.Context(), "bash", "-c", shell)
			command.Dir = folder
			command.Env = append(os.Environ(), asCorbel+"=true", "PATH="+bin+":"+os.Getenv("PATH"), env.AssetsVariable+"="+assets)
			output, err := command.CombinedOutput()
			if printed = string(output); err != nil {
				t.Fatalf("%s: %v\n%s", shell, err, printed)
			}
		}
	}
	if ran < 10 {
		t.Errorf("only %d commands were found", ran)
	}
}

// The project of a Helm operator with two kinds compiles, with its tests, and renders what its golden file has.
func TestTheProjectOfAHelmOperatorRenders(t *testing.T) {
	if !slice.FromEnvironment(t).Whole() {
		t.Skip("it compiles an operator with its dependencies, half a minute of processor time: make test-all runs it")
	}
	project := filepath.Join(t.TempDir(), "backend-operator")
	command := New()
	command.SetArgs([]string{"init", project, "--from-operator", "../scaffold/testdata/helm-operator"})
	command.SetErr(t.Output())
	check.NoError(t, command.ExecuteContext(t.Context()))
	run := func(program string, args ...string) string {
		command := scaffold.GoCommand(t.Context(), program, args...)
		command.Dir, command.Env = project, append(command.Env, "GOWORK=off")
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", program, args, err, output)
		}
		return string(output)
	}
	run("go", "vet", "./...")
	operator := filepath.Join(t.TempDir(), "operator")
	run("go", "build", "-o", operator, ".")
	golden := string(check.Must(os.ReadFile(filepath.Join(project, "cache", "testdata", "sample.golden")))(t))
	check.SameNamed(t, "rendered", "---\n"+golden, strings.ReplaceAll(run(operator, "cache", "render", "-f", "cache/samples"), "  namespace: default\n", ""))
	check.Contains(t, run(operator, "site", "crd"), "name: caches.data.example.com\n", "name: sites.web.example.com\n")
}

func TestTheProgramHasAVersion(t *testing.T) {
	command, out := New(), &bytes.Buffer{}
	command.SetOut(out)
	command.SetArgs([]string{"--version"})
	if err := command.Execute(); err != nil || !strings.HasPrefix(out.String(), "corbel version ") {
		t.Errorf("%v: %q", err, out)
	}
	out.Reset()
	command.SetArgs([]string{"version"})
	check.NoError(t, command.Execute())
	check.Contains(t, out.String(), "version    (devel)\n", "go         go1.")
}

func TestTheVersionNamesTheCommit(t *testing.T) {
	settings := []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"}}
	checkout := &debug.BuildInfo{Main: debug.Module{Path: commandModule}, Settings: settings}
	project := &debug.BuildInfo{Main: debug.Module{Path: "example.com/shop"}, Settings: settings, Deps: []*debug.Module{{Path: libraryModule, Version: "v1.2.3", Sum: "h1:library"}}}
	for name, test := range map[string]struct{ got, want string }{
		"a release":             {describe(project, "def", "2026-02-03T04:05:06Z"), "version    v1.2.3\nrevision   def\ndate       2026-02-03T04:05:06Z\n"},
		"a checkout":            {describe(checkout, "", ""), "version    (devel)\nrevision   abc with changes\ndate       2026-01-02T03:04:05Z\n"},
		"the tool of a project": {describe(project, "", ""), "version    v1.2.3\nrevision   unknown\ndate       unknown\n"},
	} {
		if !strings.HasPrefix(test.got, test.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, test.got, test.want)
		}
	}
}
