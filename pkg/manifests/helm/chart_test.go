// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/trap"
)

func TestAPackedChartHasTheDigestOfItsFolder(t *testing.T) {
	archive := archived(t, regular("web/Chart.yaml", chartFile), regular("web/templates/a.yaml", manifest("x")))
	packed := check.Must(helm.New(fstest.MapFS{"web": {Data: archive}}, "web", helm.Options{}))(t)
	unpacked, err := helm.New(folder(map[string]string{"web/templates/a.yaml": manifest("x")}), "web", helm.Options{})
	if err != nil || renders.Digest(packed) == "" || renders.Digest(packed) != renders.Digest(unpacked) {
		t.Errorf("got %q and %q, %v", renders.Digest(packed), renders.Digest(unpacked), err)
	}
}

func TestWhatIsNoChartIsRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		fsys fs.FS
		root string
		want string
	}{
		{"no file system", nil, "web", "the file system is nil"},
		{"a path that leads out", fstest.MapFS{}, "../web", "want a slash-separated path below the root"},
		{"an absolute path", fstest.MapFS{}, "/web", "want a slash-separated path below the root"},
		{"a path with a line end", fstest.MapFS{}, "we\nb", "file does not exist"},
		{"nothing", fstest.MapFS{}, "web", "file does not exist"},
		{"a folder without Chart.yaml", fstest.MapFS{"web/a.yaml": {}}, "web", "Chart.yaml file is missing"},
		{"a file that is not packed", fstest.MapFS{"web": {Data: []byte("x")}}, "web", "it is no packed chart"},
		{"a library", folder(map[string]string{"web/Chart.yaml": chartFile + "type: library\n"}), "web", "library charts are not installable"},
		{"a broken sub-chart", folder(map[string]string{"web/charts/db/x.yaml": ""}), "web", "error unpacking subchart db"},
		{"values that do not parse", folder(map[string]string{"web/values.yaml": "a: [\n"}), "web", "cannot load values.yaml"},
		{"a later version of charts", folder(map[string]string{"web/Chart.yaml": "apiVersion: v3\nname: web\nversion: 1.0.0\n"}), "web", `chart web: Chart.yaml: apiVersion "v3" is not supported; Helm installs charts of v1 and v2`},
		{"no version of charts", folder(map[string]string{"web/Chart.yaml": "apiVersion: apps/v1\nname: web\nversion: 1.0.0\n"}), "web", `apiVersion "apps/v1" is not supported`},
		{"a wrong alias", folder(map[string]string{"web/Chart.yaml": chartFile + "dependencies: [{name: db, alias: 'a b'}]\n"}), "web", "disallowed characters in the alias"},
		{"a symbolic link to a folder above", fstest.MapFS{"web/Chart.yaml": {Data: []byte(chartFile)}, "web/templates/x": {Mode: fs.ModeSymlink, Data: []byte("../../web")}}, "web", "templates/x: links lead in a circle to folder web"},
		{"a symbolic link that leads out", fstest.MapFS{"web/Chart.yaml": {Data: []byte(chartFile)}, "web/templates/x.yaml": {Mode: fs.ModeSymlink, Data: []byte("/etc/passwd")}}, "web", "templates/x.yaml: the symbolic link leads out of the file system; put a copy in its place"},
		{"a pipe", fstest.MapFS{"web/Chart.yaml": {Data: []byte(chartFile)}, "web/templates/x.yaml": {Mode: fs.ModeNamedPipe}}, "web", "templates/x.yaml: it is no regular file"},
		{"a chart that leads out", fstest.MapFS{"web": {Mode: fs.ModeSymlink, Data: []byte("../other")}}, "web", `chart "web": the symbolic link leads out of the file system`},
		{"rules that are a pipe", fstest.MapFS{"web/Chart.yaml": {Data: []byte(chartFile)}, "web/.helmignore": {Mode: fs.ModeNamedPipe}}, "web", "web/.helmignore: it is no regular file"},
		{"rules that lead out", fstest.MapFS{"web/Chart.yaml": {Data: []byte(chartFile)}, "web/.helmignore": {Mode: fs.ModeSymlink, Data: []byte("/etc/passwd")}}, "web", "web/.helmignore: the symbolic link leads out of the file system"},
		{"rules that are not supported", folder(map[string]string{"web/.helmignore": "a/**\n"}), "web", "double-star"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := helm.New(test.fsys, test.root, helm.Options{})
			check.Fails(t, err, test.want)
			if _, again := g.Generate(t.Context(), "ns", "app", nil); again == nil || again.Error() != err.Error() {
				t.Errorf("then got %v", again)
			}
		})
	}
}

// Links are followed as Helm does, but not out of the file system.
func TestLinksInAChartAreFollowed(t *testing.T) {
	root := check.Must(os.OpenRoot(t.TempDir()))(t)
	defer func() { _ = root.Close() }()
	write := func(name, text string) {
		t.Helper()
		check.NoError(t, errors.Join(root.MkdirAll(path.Dir(name), 0o700), root.WriteFile(name, []byte(text), 0o600)))
	}
	outside := filepath.Join(t.TempDir(), "outside")
	check.NoError(t, os.WriteFile(outside, []byte("outside"), 0o600))
	write("web/Chart.yaml", chartFile)
	write("web/.helmignore", "templates/ignored\n")
	write("web/templates/b.yaml", manifest(`{{ .Files.Get "LICENSE" }}{{ .Files.Get "files/x.txt" }}{{ .Files.Get "out.txt" }}{{ .Files.Get "gone.txt" }}`))
	write("common/values.yaml", "a: 1\n")
	write("common/more/a.yaml", manifest(`{{ .Values.a }}`))
	write("common/files/x.txt", "text")
	write("LICENSE", "free ")
	for link, target := range map[string]string{
		"web/values.yaml": "../common/values.yaml", "web/templates/more": "../../common/more", "web/files": "../common/files", "web/LICENSE": "../LICENSE",
		"web/gone.txt": "nowhere", "web/templates/gone.yaml": "nowhere", "web/out.txt": outside, "web/templates/ignored": outside,
		"common/files/again": "../files/x.txt",
	} {
		check.NoError(t, root.Symlink(target, link))
	}
	for name, fsys := range map[string]fs.FS{"a folder": os.DirFS(root.Name()), "a root": root.FS()} {
		g, err := helm.New(fsys, "web", helm.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		objects, err := manifests.Generate(t.Context(), g, "ns", "app", nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, object := range objects {
			text, _, _ := unstructured.NestedString(object.(*unstructured.Unstructured).Object, "data", "v")
			got = append(got, text)
		}
		check.EqualNamed(t, name, []string{"free text", "1"}, got)
	}
}

// hanging is a file system with files that cannot be opened in time.
type hanging struct{ release chan struct{} }

func (h hanging) Open(name string) (fs.File, error) {
	<-h.release
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func TestAFileSystemThatHangsIsAbandoned(t *testing.T) {
	h := hanging{release: make(chan struct{})}
	defer close(h.release)
	_, err := helm.New(h, "web", helm.Options{Timeout: 20 * time.Millisecond})
	var late *timeout.Error
	if !errors.As(err, &late) {
		t.Errorf("got the error %v", err)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	_, err := helm.New(folder(nil), "web", helm.Options{CRDs: "sometimes", KubeVersion: "x"})
	check.Fails(t, err, `option CRDs: "sometimes" is not one of apply, once, never`, "option KubeVersion")
}

// Helm installs the items of a list one by one, and looks for hooks in the list.
func TestListsAreSplitIntoTheirItems(t *testing.T) {
	item := func(name string) string { return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}" }
	text := "apiVersion: v1\nkind: List\nitems:\n- " + item("a") + "\n- {apiVersion: v1, kind: List, items: [" + item("b") + "]}\n---\n" +
		"apiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: c}}]\n---\n" +
		"apiVersion: v1\nkind: List\nmetadata: {annotations: {helm.sh/hook: pre-install}}\nitems: [" + item("d") + "]\n---\n" +
		"apiVersion: v1\nkind: Service\nmetadata: {name: e}\n"
	got := ownAnnotations(t, text, 1, helm.Options{})
	check.Equal(t, []string{"e", "c", "a", "b", "d apply-order=-20000"}, got)
	crds := folder(map[string]string{"web/crds/a.yaml": "apiVersion: v1\nkind: List\nitems: [" + item("a") + ", " + item("b") + "]\n"})
	objects, err := render(t.Context(), crds, nil, helm.Options{})
	if err != nil || len(objects) != 2 {
		t.Errorf("got %v, %v", objects, err)
	}
}

func TestTheReleaseIsTheDeployment(t *testing.T) {
	action := `{{ with .Release }}{{ .Name }} {{ .Namespace }} {{ .Revision }} {{ .IsInstall }} {{ .IsUpgrade }} {{ .Service }}{{ end }}`
	for revision, want := range map[int64]string{1: "app ns 1 true false Helm", 7: "app ns 7 false true Helm"} {
		got, err := evaluate(reconciling(t.Context(), revision), action, nil, helm.Options{})
		if err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if got, err := evaluate(t.Context(), "{{ .Release.Service }}", nil, helm.Options{ReleaseService: "shop.example.com"}); err != nil || got != "shop.example.com" {
		t.Errorf("got %q, %v, want the option", got, err)
	}
}

func TestTheDefaultsOfAChartAreItsValues(t *testing.T) {
	g := check.Must(helm.New(folder(map[string]string{"web/Chart.yaml": chartFile, "web/values.yaml": "a: {b: 1}\n"}), "web", helm.Options{}))(t)
	for _, g := range []manifests.Generator{g, manifests.Transform(g)} {
		check.Equal(t, map[string]any{"a": map[string]any{"b": int64(1)}}, renders.DefaultValues(g))
	}
}

func TestWholeNumbersOfParametersStayWithTheOption(t *testing.T) {
	values := map[string]any{"bytes": int64(1_000_000), "list": []any{int64(1 << 60)}}
	for action, want := range map[string]string{"{{ .Values.bytes }}": "1000000", "{{ index .Values.list 0 }}": "1152921504606846976", "{{ eq .Values.bytes 1000000 }}": "true"} {
		got, err := evaluate(t.Context(), action, values, helm.Options{KeepIntegers: true})
		check.NoError(t, err)
		check.SameNamed(t, action, want, got)
	}
	delete(values, "list")
	check.SameNamed(t, "as Helm does", "1e+06", check.Must(evaluate(t.Context(), "{{ .Values.bytes }}", values, helm.Options{}))(t))
}

func TestTheOptionsFixTheCapabilities(t *testing.T) {
	action := `{{ .Capabilities.KubeVersion.Version }} {{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.APIVersions.Has "x/v1" }} {{ .Capabilities.APIVersions.Has "apps/v1" }}`
	got, err := evaluate(t.Context(), action, nil, helm.Options{KubeVersion: "1.31.2", APIVersions: []string{"x/v1"}})
	if want := "v1.31.2 31 true false"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	_, err = render(t.Context(), folder(map[string]string{"web/Chart.yaml": chartFile + "kubeVersion: '>=1.40.0'\n"}), nil, helm.Options{KubeVersion: "1.31.2"})
	check.Fails(t, err, "chart web requires Kubernetes >=1.40.0, and the target has v1.31.2")
}

const chartFile = "apiVersion: v2\nname: web\nversion: 1.2.3\n"

// folder is a file system; a chart without a Chart.yaml gets one.
func folder(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{"web/Chart.yaml": {Data: []byte(chartFile)}}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// manifest is a ConfigMap with the result of the action as its only value.
func manifest(action string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  v: |-\n    " + action + "\n"
}

func render(ctx context.Context, fsys fstest.MapFS, values map[string]any, options helm.Options) ([]*unstructured.Unstructured, error) {
	g, err := helm.New(fsys, "web", options)
	if err != nil {
		return nil, err
	}
	objects, err := manifests.Generate(ctx, g, "ns", "app", types.UnstructurableMap(values))
	if err != nil {
		return nil, err
	}
	result := make([]*unstructured.Unstructured, len(objects))
	for i := range objects {
		result[i] = objects[i].(*unstructured.Unstructured)
	}
	return result, nil
}

// evaluate renders an action and returns the text.
func evaluate(ctx context.Context, action string, values map[string]any, options helm.Options) (string, error) {
	objects, err := render(ctx, folder(map[string]string{"web/templates/a.yaml": manifest(action)}), values, options)
	if err != nil {
		return "", err
	}
	text, _, err := unstructured.NestedString(objects[0].Object, "data", "v")
	return text, err
}

func reconciling(ctx context.Context, revision int64) context.Context {
	return manifests.Context{ReconcilerName: "app.example.com", Revision: revision, Upgrade: revision > 1}.In(ctx)
}

// data returns the only value of a ConfigMap.
func data(t *testing.T, object any) string {
	t.Helper()
	text, found, err := unstructured.NestedString(object.(*unstructured.Unstructured).Object, "data", "v")
	if err != nil || !found {
		t.Fatalf("got %v, %v", found, err)
	}
	return text
}

// archived packs entries, in their order and as they are.
func archived(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var buffer bytes.Buffer
	zipped := check.Must(gzip.NewWriterLevel(&buffer, gzip.BestSpeed))(t) // some archives are large
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
		check.NoError(t, err)
	}
	check.NoError(t, errors.Join(archive.Close(), zipped.Close()))
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
			check.Fails(t, err, test.want)
			traps.Check(t, fmt.Sprint(objects, err))
		})
	}
	t.Run("Z11 a packed sub-chart that was changed", func(t *testing.T) {
		_, err := render(t.Context(), folder(map[string]string{"web/charts/web.tgz": string(changed)}), nil, helm.Options{})
		check.Fails(t, err, "charts/web.tgz: it is no packed chart: gzip: invalid checksum")
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
			check.Fails(t, err, "packed sub-charts, at all levels together, are larger than 104857600 bytes")
		})
	}
	t.Run("Z25 packed sub-charts without end", func(t *testing.T) {
		_, err := render(t.Context(), folder(map[string]string{"web/charts/web.tgz": nested(60, 1)}), nil, helm.Options{})
		check.Fails(t, err, "sub-charts are nested deeper than 50 levels")
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
		check.Fails(t, err, "web/y: the chart is larger than 104857600 bytes")
	})
}

//go:embed testdata/embedded
var withoutAll embed.FS

//go:embed all:testdata/embedded
var withAll embed.FS

func TestAChartThatWasEmbeddedWithoutAllIsRefusedByNew(t *testing.T) {
	_, err := helm.New(withoutAll, "testdata/embedded", helm.Options{})
	check.Fails(t, err, `web/templates/a.yaml:4:`, `there is no template "web.fullname"`, `embed it with the prefix "all:"`)
	if _, err := helm.New(withAll, "testdata/embedded", helm.Options{}); err != nil {
		t.Error(err)
	}
}

func TestAChartThatCallsAMissingTemplateOnConditionIsNotRefusedByNew(t *testing.T) {
	for name, text := range map[string]string{
		"a branch":           `{{ if .Values.other }}{{ include "nope" . }}{{ end }}x`,
		"a loop":             `{{ range .Values.other }}{{ template "nope" . }}{{ end }}x`,
		"a block with with":  `{{ with .Values.other }}{{ include "nope" . }}{{ end }}x`,
		"an argument of or":  `{{ or .Values.x (include "nope" .) }}`,
		"an argument of and": `{{ and .Values.other (include "nope" .) | default "x" }}`,
		"a definition":       `{{ define "a" }}{{ include "nope" . }}{{ end }}x`,
		"a name of a file":   `{{ include "web/templates/b.txt" . }}`,
		"a computed name":    `{{ include (print "web/templates/" "b.txt") . }}`,
	} {
		objects, err := render(t.Context(), folder(map[string]string{"web/templates/a.yaml": manifest(text), "web/templates/b.txt": "{{/* x */}}"}), map[string]any{"x": "x"}, helm.Options{})
		if err != nil || len(objects) != 1 {
			t.Errorf("%s: got %v, %v", name, objects, err)
		}
	}
	chart := map[string]string{"web/templates/a.yaml": manifest(`{{ if .Values.x }}{{ include "nope" . }}{{ end }}`)}
	_, err := render(t.Context(), folder(chart), map[string]any{"x": "x"}, helm.Options{})
	check.Fails(t, err, `web/templates/a.yaml:`, `there is no template "nope"`, `embed it with the prefix "all:"`)
	chart["web/templates/_helpers.tpl"] = ""
	if _, err = render(t.Context(), folder(chart), map[string]any{"x": "x"}, helm.Options{}); err == nil || len(err.Error()) > 200 {
		t.Errorf("got the error %v, want one without the hint", err)
	}
}

func TestObjectsAreKnownByTheirTemplates(t *testing.T) {
	fsys := folder(map[string]string{
		"web/crds/c.yaml":      "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: c\n",
		"web/templates/a.yaml": manifest("x"), "web/templates/hook.yaml": hook("Job", "j", "pre-install", ""),
		"web/charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "web/charts/db/templates/b.yaml": manifest("y"),
	})
	ctx, origins := renders.WithOrigins(reconciling(t.Context(), 1))
	objects := check.Must(render(ctx, fsys, nil, helm.Options{}))(t)
	var got []string
	for _, object := range objects {
		got = append(got, origins.Of(object))
	}
	want := []string{"web/crds/c.yaml", "web/charts/db/templates/b.yaml", "web/templates/a.yaml", "web/templates/hook.yaml"}
	check.Equal(t, want, got)
}

func TestLookupReadsTheTarget(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Data: map[string][]byte{"k": []byte("one")}}
	ctx := manifests.Context{Client: fake.NewClientBuilder().WithObjects(secret).Build()}.In(t.Context())
	action := `{{ with lookup "v1" "Secret" "ns" "a" }}{{ .data.k | b64dec }}{{ else }}nothing{{ end }}`
	for disabled, want := range map[bool]string{false: "one", true: "nothing"} {
		if got, err := evaluate(ctx, action, nil, helm.Options{DisableLookup: disabled}); got != want || err != nil {
			t.Errorf("switched off %t: got %q, %v, want %q", disabled, got, err, want)
		}
	}
}
