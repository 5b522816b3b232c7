// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/test/trap"
)

// archived packs entries, in their order and as they are.
func archived(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var buffer bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&buffer, gzip.BestSpeed) // some archives are large
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(zipped)
	for _, entry := range entries {
		content := entry.PAXRecords["content"]
		entry.PAXRecords, entry.Mode = nil, 0o644
		if entry.Typeflag == 0 {
			entry.Typeflag, entry.Size = tar.TypeReg, int64(len(content))
		}
		err := archive.WriteHeader(&entry)
		if err == nil && entry.Typeflag == tar.TypeReg {
			_, err = archive.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func regular(name, content string) tar.Header {
	return tar.Header{Name: name, PAXRecords: map[string]string{"content": content}}
}

func TestBadArchivesAreOneClearError(t *testing.T) {
	traps := trap.Set(t)
	whole := archived(t, regular("web/Chart.yaml", chartFile), regular("web/templates/a.yaml", manifest("x")))
	link := func(kind byte) []byte {
		return archived(t, regular("web/Chart.yaml", chartFile),
			tar.Header{Name: "web/templates/a.yaml", Typeflag: kind, Linkname: traps.File}, regular("web/templates/a.yaml", manifest("x")))
	}
	changed := bytes.Clone(whole)
	changed[len(changed)-6] ^= 1 // of the check sum
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"Z09 a name that leads out":            {archived(t, regular("../../x", "x")), "illegally references parent directory"},
		"Z09 an absolute name":                 {archived(t, regular("/etc/passwd", "x")), "Chart.yaml file is missing"},
		"Z09 a name that leads out in between": {archived(t, regular("web/a/../../../b", "x")), "illegally references parent directory"},
		"Z09 a symbolic link":                  {link(tar.TypeSymlink), "web/templates/a.yaml: it is a link"},
		"Z09 a hard link":                      {link(tar.TypeLink), "web/templates/a.yaml: it is a link"},
		"Z11 half an archive":                  {whole[:len(whole)/2], "it is no packed chart: unexpected EOF"},
		"Z11 an archive without its end":       {whole[:len(whole)-4], "it is no packed chart: unexpected EOF"},
		"Z11 an archive that was changed":      {changed, "it is no packed chart: gzip: invalid checksum"},
		"Z25 a bomb":                           {archived(t, regular("web/Chart.yaml", chartFile), regular("web/b", strings.Repeat("x", 150<<20))), "larger than the maximum size"},
		"Z25 a bomb beyond all limits":         {archived(t, regular("web/Chart.yaml", chartFile), regular("web/a", strings.Repeat("x", 201<<20))), "larger than the maximum size"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := render(t.Context(), fstest.MapFS{"web": {Data: test.data}}, nil, helm.Options{})
			wantError(t, err, test.want)
			traps.Check(t, fmt.Sprint(objects, err))
		})
	}
	t.Run("Z11 a packed sub-chart that was changed", func(t *testing.T) {
		_, err := render(t.Context(), folder(map[string]string{"web/charts/web.tgz": string(changed)}), nil, helm.Options{})
		wantError(t, err, "charts/web.tgz: it is no packed chart: gzip: invalid checksum")
	})
	// The library limits each archive, not all of them together.
	nested := func(levels, filler int) string {
		packed := string(archived(t, regular("web/Chart.yaml", chartFile), regular("web/filler", strings.Repeat("x", filler))))
		for range levels {
			packed = string(archived(t, regular("web/Chart.yaml", chartFile), regular("web/filler", strings.Repeat("x", filler)), regular("web/charts/web.tgz", packed)))
		}
		return packed
	}
	deep := nested(8, 15<<20)
	for name, files := range map[string]fstest.MapFS{
		"in a folder":              folder(map[string]string{"web/charts/web.tgz": deep}),
		"in an unpacked sub-chart": folder(map[string]string{"web/charts/db/Chart.yaml": chartFile, "web/charts/db/charts/web.tgz": deep}),
		"in a packed chart":        {"web": {Data: []byte(deep)}},
	} {
		t.Run("Z25 packed sub-charts in each other "+name, func(t *testing.T) {
			_, err := render(t.Context(), files, nil, helm.Options{})
			wantError(t, err, "packed sub-charts, at all levels together, are larger than 104857600 bytes")
		})
	}
	t.Run("Z25 packed sub-charts without end", func(t *testing.T) {
		_, err := render(t.Context(), folder(map[string]string{"web/charts/web.tgz": nested(60, 1)}), nil, helm.Options{})
		wantError(t, err, "sub-charts are nested deeper than 50 levels")
		if err != nil && len(err.Error()) > 4096 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
	})
	// As Helm has it.
	twice := archived(t, regular("web/Chart.yaml", chartFile), regular("web/templates/a.yaml", manifest("x")), regular("web/templates/a.yaml", manifest("y")))
	t.Run("Z09 a file twice", func(t *testing.T) {
		objects, err := render(t.Context(), fstest.MapFS{"web": {Data: append(twice, "something else"...)}}, nil, helm.Options{})
		if err != nil || len(objects) != 1 || data(t, objects[0]) != "y" {
			t.Errorf("got %v, %v", objects, err)
		}
	})
	t.Run("Z25 a folder of 100 MiB", func(t *testing.T) {
		_, err := render(t.Context(), folder(map[string]string{"web/x": strings.Repeat("x", 60<<20), "web/y": strings.Repeat("x", 60<<20)}), nil, helm.Options{})
		wantError(t, err, "web/y: the chart is larger than 104857600 bytes")
	})
}

// With the race detector it also shows that renderings share nothing they change.
func TestRenderingsOfAChartAtTheSameTimeDoNotSeeEachOther(t *testing.T) {
	g, err := helm.New(folder(map[string]string{
		"web/values.yaml":      "m: {k: v}\n",
		"web/templates/a.yaml": manifest(`{{ $_ := set .Values "n" .Release.Name }}{{ $_ := set .Values.m "k" .Release.Name }}{{ toJson .Values }}`),
	}), "web", helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("T39 changed values", func(t *testing.T) {
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				app := fmt.Sprint("app", i)
				objects, err := manifests.Generate(t.Context(), g, "ns", app, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if got, want := data(t, objects[0]), fmt.Sprintf(`{"m":{"k":%q},"n":%q}`, app, app); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		}
		group.Wait()
	})
}
