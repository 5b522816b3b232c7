// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/pkg/manifests/internal/files"
	"github.com/corbel-run/corbel/test/check"
)

func TestReadGivesPathsWithAndWithoutTheRoot(t *testing.T) {
	fsys := fstest.MapFS{"a/b/x.txt": {Data: []byte("1")}, "a/y.TXT": {Data: []byte("2")}, "a/z.bin": {}}
	for root, want := range map[string][]string{
		"a":         {"a/b/x.txt b/x.txt 1", "a/y.TXT y.TXT 2"},
		".":         {"a/b/x.txt a/b/x.txt 1", "a/y.TXT a/y.TXT 2"},
		"a/b/x.txt": {"a/b/x.txt x.txt 1"},
	} {
		read := check.Must(files.Read(fsys, root, files.Selection{Extensions: []string{".txt"}}))(t)
		var got []string
		for _, file := range read {
			got = append(got, file.Path+" "+file.Below+" "+string(file.Data))
		}
		check.EqualNamed(t, root, want, got)
	}
}

// broken is a file system in which one file cannot be opened.
type broken struct{ fstest.MapFS }

func (b broken) Open(name string) (fs.File, error) {
	if name == "b.txt" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("bad sector")}
	}
	return b.MapFS.Open(name)
}

func TestReadGoesOnAfterAFileThatCannotBeRead(t *testing.T) {
	fsys := broken{fstest.MapFS{"a.txt": {}, "b.txt": {}, "c.txt": {}, "d.txt": {Mode: fs.ModeNamedPipe}}}
	read, err := files.Read(fsys, "", files.Selection{Extensions: []string{".txt"}})
	if len(read) != 2 {
		t.Errorf("got %d files", len(read))
	}
	for _, part := range []string{"b.txt: bad sector", "d.txt: it is no regular file"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got the error %v, want it to contain %q", err, part)
		}
	}
}

func TestReadReadsHiddenFilesOnRequest(t *testing.T) {
	fsys := fstest.MapFS{".env": {}, ".git/config": {}, "..data/a": {}, "b": {}, ".x/c": {}}
	for hidden, want := range map[bool]string{false: "b", true: ".env .x/c b"} {
		read := check.Must(files.Read(fsys, ".", files.Selection{Hidden: hidden}))(t)
		var got []string
		for _, file := range read {
			got = append(got, file.Path)
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("hidden %v: -want +got:\n%s", hidden, diff)
		}
	}
}

// swapping is a file system in which a link replaces a file when it is opened.
type swapping struct {
	fs.ReadLinkFS
	swap func() error
}

func (s swapping) Open(name string) (fs.File, error) {
	if name == "b.txt" {
		if err := s.swap(); err != nil {
			return nil, err
		}
	}
	return s.ReadLinkFS.Open(name)
}

func TestAFileThatIsReplacedByALinkIsNotRead(t *testing.T) {
	secret, folder := filepath.Join(t.TempDir(), "secret"), t.TempDir()
	for name, text := range map[string]string{secret: "hunter2", filepath.Join(folder, "a.txt"): "a", filepath.Join(folder, "b.txt"): "b"} {
		check.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	link := filepath.Join(folder, "b.txt")
	fsys := swapping{ReadLinkFS: os.DirFS(folder).(fs.ReadLinkFS), swap: func() error {
		return errors.Join(os.Remove(link), os.Symlink(secret, link))
	}}
	read, err := files.Read(fsys, ".", files.Selection{})
	check.Fails(t, err, "b.txt: it was replaced while it was read")
	if len(read) != 1 || string(read[0].Data) != "a" {
		t.Errorf("got %v", read)
	}
}
