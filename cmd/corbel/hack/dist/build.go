// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold"
)

const (
	libraryModule = "github.com/corbel-run/corbel"
	commandModule = libraryModule + "/cmd/corbel"
	sourceURL     = "https://" + libraryModule
)

// release is what is built.
type release struct {
	version, revision string
	// date is that of the commit: everything that has a date in a release has this one, so that the same commit makes the same files.
	date time.Time
}

// platform is a GOOS with a GOARCH.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// program is a program of the release.
type program struct {
	name string
	// pkg is its package, and folder the folder of its module.
	pkg, folder string
	// installed programs are built from the module at the version of the release, as go install does; others from their folder.
	installed bool
	ldflags   string
}

// binary is a program that is built for a platform.
type binary struct {
	program
	platform
	content []byte
	info    *debug.BuildInfo
	modules []module
}

// builder builds programs from the modules as users get them: from archives of the tracked files, and without the workspace. Modules
// are unpacked below a folder of its own, so that the version of a release that is not published yet stays nowhere else.
type builder struct {
	release
	root, work  string
	goCommand   string
	environment []string
	host        platform
}

// newBuilder packs the modules of the repository in a folder. The caller calls close.
func newBuilder(ctx context.Context, root, goCommand string) (*builder, error) {
	work, err := os.MkdirTemp("", "corbel-dist-")
	if err != nil {
		return nil, err
	}
	b := &builder{root: root, work: work, goCommand: goCommand, environment: os.Environ()}
	if err = b.describe(ctx); err == nil {
		err = b.prepare(ctx)
	}
	if err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *builder) close() { _ = os.RemoveAll(b.work) }

// describe finds out what is released: the version that cmd/corbel/go.mod requires, at the commit that is checked out.
func (b *builder) describe(ctx context.Context) error {
	const name = "cmd/corbel/go.mod"
	text, err := os.ReadFile(filepath.Join(b.root, name))
	if err != nil {
		return err
	}
	goMod, err := modfile.Parse(name, text, nil)
	if err != nil {
		return err
	}
	for _, required := range goMod.Require {
		if required.Mod.Path == libraryModule {
			b.version = required.Mod.Version
		}
	}
	commit, err := b.run(ctx, b.root, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	revision, seconds, _ := strings.Cut(strings.TrimSpace(commit), " ")
	date, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("git log printed %q: %w", commit, err)
	}
	changes, err := b.run(ctx, b.root, nil, "git", "status", "--porcelain", "--untracked-files=no")
	if changes != "" {
		revision += " with changes"
	}
	b.revision, b.date = revision, time.Unix(date, 0).UTC()
	return err
}

// prepare packs the modules, and sets the environment of the go command. Nothing of the user's environment that changes a binary is in it.
func (b *builder) prepare(ctx context.Context) error {
	settings := map[string]string{}
	text, err := b.run(ctx, b.root, nil, b.goCommand, "env", "-json")
	if err == nil {
		err = json.Unmarshal([]byte(text), &settings)
	}
	if err != nil {
		return err
	}
	// The command of the user may have chosen this toolchain, and would not with GOTOOLCHAIN=local.
	b.goCommand = filepath.Join(settings["GOROOT"], "bin", "go")
	proxy, cache := filepath.Join(b.work, "proxy"), filepath.Join(settings["GOMODCACHE"], "cache", "download")
	if _, err := b.run(ctx, b.root, []string{"GOWORK=" + filepath.Join(b.root, "go.work")}, b.goCommand, "run", "./cmd/corbel/hack/pack", b.version, proxy, ".", "cmd/corbel"); err != nil {
		return err
	}
	// The go command asks the checksum database about each module, unless the answer is in this folder.
	checksums := filepath.Join(cache, "sumdb")
	if err := errors.Join(os.MkdirAll(checksums, 0o755), os.MkdirAll(filepath.Join(b.modules(), "cache", "download"), 0o755)); err != nil {
		return err
	}
	if err := os.Symlink(checksums, filepath.Join(b.modules(), "cache", "download", "sumdb")); err != nil {
		return err
	}
	b.host = platform{settings["GOHOSTOS"], settings["GOHOSTARCH"]}
	b.environment = nil
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "GO") && !strings.HasPrefix(variable, "CGO_") {
			b.environment = append(b.environment, variable)
		}
	}
	b.environment = append(b.environment,
		"PATH="+filepath.Join(settings["GOROOT"], "bin")+string(os.PathListSeparator)+os.Getenv("PATH"),
		"GOENV=off", "GOWORK=off", "GOTOOLCHAIN=local", "CGO_ENABLED=0", "GOPATH="+b.work, "GOMODCACHE="+b.modules(), "GOCACHE="+settings["GOCACHE"],
		"GOFLAGS=-trimpath -modcacherw -buildvcs=false", "GODEBUG=goindex=0", // no index of these folders stays in the build cache
		"GOPROXY=file://"+proxy+",file://"+cache+","+settings["GOPROXY"], "GONOPROXY=none", "GOSUMDB="+settings["GOSUMDB"],
		"GONOSUMDB="+strings.TrimPrefix(settings["GONOSUMDB"]+","+libraryModule+","+libraryModule+"/*", ","))
	return nil
}

// modules is the folder in which modules are unpacked.
func (b *builder) modules() string { return filepath.Join(b.work, "modules") }

// command returns the program corbel.
func (b *builder) command() program {
	return program{
		name: "corbel", pkg: commandModule, folder: filepath.Join(b.modules(), filepath.FromSlash(commandModule)+"@"+b.version), installed: true,
		ldflags: fmt.Sprintf("-X '%[1]s.revision=%[2]s' -X '%[1]s.date=%[3]s'", commandModule+"/internal/command", b.revision, b.date.Format(time.RFC3339)),
	}
}

// shop returns the operator of the example.
func (b *builder) shop() program {
	return program{name: "shop", pkg: libraryModule + "/examples/shop", folder: filepath.Join(b.modules(), filepath.FromSlash(libraryModule)+"@"+b.version), installed: true}
}

// scaffold returns the operator that corbel init makes of the chart of the example.
func (b *builder) scaffold(ctx context.Context) (program, error) {
	corbel, err := b.install(ctx, b.command(), b.host)
	if err != nil {
		return program{}, err
	}
	p := program{name: "shop-operator", pkg: ".", folder: filepath.Join(b.work, "shop-operator")}
	if _, err := b.run(ctx, b.work, nil, corbel, "init", p.folder, "--from-chart", filepath.Join(b.root, "examples", "shop", "chart"), "--kind", "Shop", "--group", "shop.example.com"); err != nil {
		return program{}, err
	}
	// The project is an example of this repository, with its licence.
	licence, err := os.ReadFile(filepath.Join(b.root, "LICENSE"))
	if err != nil {
		return program{}, err
	}
	return p, os.WriteFile(filepath.Join(p.folder, "LICENSE"), licence, 0o644)
}

// build builds a program, and finds out what is linked into it.
func (b *builder) build(ctx context.Context, p program, on platform) (*binary, error) {
	name, err := b.install(ctx, p, on)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	built := &binary{program: p, platform: on, content: content, info: info}
	built.modules, err = b.linked(ctx, built)
	return built, err
}

// install builds a program, and returns the name of the file.
func (b *builder) install(ctx context.Context, p program, on platform) (string, error) {
	environment, flags := []string{"GOOS=" + on.os, "GOARCH=" + on.arch}, "-ldflags=-s -w "+p.ldflags
	name, folder := path.Base(p.pkg), filepath.Join(b.work, "bin")
	if !p.installed {
		name = p.name
	}
	if on != b.host {
		folder = filepath.Join(folder, on.os+"_"+on.arch)
	}
	if on.os == "windows" {
		name += ".exe"
	}
	name = filepath.Join(folder, name)
	var err error
	if p.installed {
		_, err = b.run(ctx, b.work, environment, b.goCommand, "install", flags, p.pkg+"@"+b.version)
	} else {
		_, err = b.run(ctx, p.folder, environment, b.goCommand, "build", flags, "-o", name, p.pkg)
	}
	return name, err
}

// run runs a command in a folder, and returns what it prints.
func (b *builder) run(ctx context.Context, folder string, environment []string, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	command := scaffold.GoCommand(ctx, name, args...)
	command.Dir, command.Env = folder, append(b.environment[:len(b.environment):len(b.environment)], environment...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
