// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"errors"
	"io/fs"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// Options describe an operator.
type Options[T component.Component] struct {
	// Name is the name of the reconciler, such as "shop.example.com". It is also the name of
	// the Lease of the leader election.
	// Default: required
	Name string
	// SchemeBuilder adds the type of the component, and its list, to the scheme.
	// Default: required
	SchemeBuilder types.SchemeBuilder
	// Generator makes the generator of the dependent objects.
	// Default: required
	Generator func() (manifests.Generator, error)
	// Reconciler are the options of the reconciler. The lock of the leader election is filled in.
	//
	// Default: the finalizer <Name>/operator
	Reconciler component.ReconcilerOptions
	// Hooks adds hooks to the reconciler.
	//
	// Default: none
	Hooks func(*component.Reconciler[T])
	// CRDs are files with the CustomResourceDefinition of the component. The command crd prints them, and commands
	// without a cluster take defaults from them.
	//
	// Default: none
	CRDs fs.FS
}

// Main runs the command that the arguments of the process ask for, and ends the process: with 0, or
// with 1 after an error, which it prints. The command plan has further exit codes.
func Main[T component.Component](options Options[T]) { exit(options.Command()) }

// Command returns the command that Main runs, so that a program can add commands of its own.
func (o Options[T]) Command() *cobra.Command { return program{o.Name, []Kind{o}}.command() }

// version returns the version of the program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionIn(info)
}

// versionIn returns the version of the module of a program, as the go command has stamped it. A program that go run has built has
// none: the version of Corbel says more then.
func versionIn(info *debug.BuildInfo) string {
	const none = "(devel)"
	version := cmp.Or(info.Main.Version, none)
	for _, m := range info.Deps {
		if version == none && m.Path == "github.com/corbel-run/corbel" && m.Replace == nil {
			version += " with Corbel " + m.Version
		}
	}
	return version
}

// Scheme returns a scheme with the type of the component and the types of Kubernetes.
func (o Options[T]) Scheme() (*runtime.Scheme, error) { return program{o.Name, []Kind{o}}.scheme() }

// addToScheme adds the types of Scheme to a scheme.
func (o Options[T]) addToScheme(scheme *runtime.Scheme) error {
	if o.SchemeBuilder == nil {
		return errors.New("the option SchemeBuilder is missing: it adds the type of the component")
	}
	return errors.Join(clientgoscheme.AddToScheme(scheme), o.SchemeBuilder.AddToScheme(scheme))
}

// SetUp adds the reconciler to a manager with the scheme, and returns it.
func (o Options[T]) SetUp(manager ctrl.Manager) (*component.Reconciler[T], error) {
	reconciler, err := o.reconciler()
	if err != nil {
		return nil, err
	}
	return reconciler, reconciler.SetupWithManager(manager)
}
