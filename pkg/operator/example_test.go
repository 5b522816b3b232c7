// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"fmt"
	"os"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/operator"
)

// An operator embeds its files with go:embed.
var files = fstest.MapFS{"config.yaml": {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ .Name }}}}")}}

func Example() {
	scheme := runtime.NewSchemeBuilder(widget.AddToScheme)
	options := operator.Options[*widget.Widget]{
		Name: "widgets.example.com", SchemeBuilder: &scheme,
		Generator: func() (manifests.Generator, error) { return gotemplate.New(files, ".", gotemplate.Options{}) },
	}
	if len(os.Args) > 1 && os.Args[1] == "run" { // the function main has only this line
		operator.Main(options)
	}
	known, err := options.Scheme()
	fmt.Println(known.Recognizes(widget.GroupVersion.WithKind("Widget")), err)
	// Output: true <nil>
}
