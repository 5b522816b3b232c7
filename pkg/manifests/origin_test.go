// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"testing"
	"testing/fstest"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestOriginsAreKnownThroughCompositions(t *testing.T) {
	templates, err := gotemplate.New(fstest.MapFS{"t/a.yaml": {Data: []byte(configMap)}}, "t", gotemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, origins := renders.WithOrigins(t.Context())
	g := manifests.Join(serving("unknown"), manifests.Transform(templates, suffixing("x")))
	objects, err := manifests.Generate(ctx, g, "", "", types.UnstructurableMap{})
	if err != nil {
		t.Fatal(err)
	}
	if got := origins.Of(objects[0]) + "," + origins.Of(objects[1]); got != ",t/a.yaml" {
		t.Errorf("got %q", got)
	}
}
