// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/pkg/manifests/internal/files"
)

func TestReadGivesPathsWithAndWithoutTheRoot(t *testing.T) {
	fsys := fstest.MapFS{"a/b/x.txt": {Data: []byte("1")}, "a/y.TXT": {Data: []byte("2")}, "a/z.bin": {}}
	for root, want := range map[string][]string{
		"a":         {"a/b/x.txt b/x.txt 1", "a/y.TXT y.TXT 2"},
		".":         {"a/b/x.txt a/b/x.txt 1", "a/y.TXT a/y.TXT 2"},
		"a/b/x.txt": {"a/b/x.txt x.txt 1"},
	} {
		read, err := files.Read(fsys, root, files.Selection{Extensions: []string{".txt"}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, file := range read {
			got = append(got, file.Path+" "+file.Below+" "+string(file.Data))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", root, diff)
		}
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
		read, err := files.Read(fsys, ".", files.Selection{Hidden: hidden})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, file := range read {
			got = append(got, file.Path)
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("hidden %v: -want +got:\n%s", hidden, diff)
		}
	}
}
