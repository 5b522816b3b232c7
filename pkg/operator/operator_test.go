// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

// widgets is an operator that renders a ConfigMap.
func widgets() Options[*widget.Widget] {
	return Options[*widget.Widget]{
		Name: "widgets.example.com", SchemeBuilder: new(runtime.NewSchemeBuilder(widget.AddToScheme)),
		Generator: func() (manifests.Generator, error) {
			return manifests.GeneratorFunc(func(_ context.Context, namespace, name string, _ types.Unstructurable) ([]client.Object, error) {
				objects, err := document.Decode("config", []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", namespace: "+namespace+"}}"))
				if err != nil {
					return nil, err
				}
				return []client.Object{objects[0]}, nil
			}), nil
		},
	}
}

// programOf is the program of one kind.
func programOf(o Options[*widget.Widget]) program { return program{o.Name, []Kind{o}} }

func TestMistakesInOptionsAndArguments(t *testing.T) {
	without := widgets()
	without.Generator = nil
	check.Fails(t, check.ErrorOf(without.SetUp(nil)), "the option Generator is missing")
	broken := widgets()
	broken.Generator = func() (manifests.Generator, error) { return nil, errors.New("the chart is broken") }
	if _, err := broken.SetUp(nil); err == nil || err.Error() != "the chart is broken" {
		t.Errorf("got %v", err)
	}
	check.Fails(t, check.ErrorOf((Options[*widget.Widget]{}).Scheme()), "the option SchemeBuilder is missing")
	for _, args := range [][]string{{"start"}, {"--leader"}, {"run", "now"}, {"uninstall", "--timeout=soon"}} {
		command := widgets().Command()
		command.SetArgs(args)
		command.SetOut(&bytes.Buffer{})
		command.SetErr(&bytes.Buffer{})
		if err := command.Execute(); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

func newFake(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := check.Must(widgets().Scheme())(t)
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func named(namespace, name string, finalizers ...string) *widget.Widget {
	w := &widget.Widget{}
	w.Namespace, w.Name, w.Finalizers, w.UID = namespace, name, finalizers, apitypes.UID(namespace+"/"+name)
	return w
}

func TestTheVersionOfAProgram(t *testing.T) {
	corbel := &debug.Module{Path: "github.com/corbel-run/corbel", Version: "v1.2.3"}
	checkout := &debug.Module{Path: corbel.Path, Version: "v0.0.0", Replace: &debug.Module{Path: "../corbel"}}
	for want, info := range map[string]debug.BuildInfo{
		"v0.1.0":                     {Main: debug.Module{Version: "v0.1.0"}, Deps: []*debug.Module{corbel}},
		"(devel) with Corbel v1.2.3": {Main: debug.Module{Version: "(devel)"}, Deps: []*debug.Module{{Path: "example.com/other", Version: "v2.0.0"}, corbel}},
		"(devel)":                    {Deps: []*debug.Module{checkout}},
	} {
		check.SameNamed(t, "version", want, versionIn(&info))
	}
}

func TestUninstallDeletesAllComponents(t *testing.T) {
	for name, test := range map[string]struct {
		namespaces []string
		says       string
		left       []string
	}{
		"of all namespaces": {nil, "deleting Widget a/one\ndeleting Widget b/two\n", nil},
		"of one namespace":  {[]string{"b"}, "deleting Widget b/two\n", []string{"a/one"}},
	} {
		c, out := newFake(t, named("a", "one"), named("b", "two")), &bytes.Buffer{}
		check.NoError(t, widgets().uninstall(t.Context(), c, test.namespaces, out))
		list := &widget.WidgetList{}
		check.NoError(t, c.List(t.Context(), list))
		var left []string
		for _, w := range list.Items {
			left = append(left, w.Namespace+"/"+w.Name)
		}
		check.SameNamed(t, name+": it says", test.says, out.String())
		check.EqualNamed(t, name+": it leaves", test.left, left)
	}
}

func TestUninstallNamesTheComponentsThatStay(t *testing.T) {
	c := newFake(t, named("a", "held", "test.corbel.run/held"), named("b", "two"))
	ctx, cancel := context.WithTimeout(t.Context(), 100*uninstallInterval/1000)
	defer cancel()
	err := widgets().uninstall(ctx, c, nil, &bytes.Buffer{})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not gone yet; condition Ready says why: [a/held") {
		t.Errorf("got %v", err)
	}
}
