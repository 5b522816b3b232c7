// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/internal/sentence"
)

// Exit codes of all commands. The codes of plan --exit-code are those of package planview.
const (
	// CodeNo means that the answer is no: a component is not ready, there are differences, or a check has found a problem.
	CodeNo = 1
	// CodeTrouble means an error.
	CodeTrouble = 2
	// CodeInterrupted means that Ctrl-C has ended the command.
	CodeInterrupted = 130
)

// ExitError ends the program with a code.
type ExitError struct {
	// Code is the exit code.
	Code int
	// Err is printed; nil prints nothing, because the output says it all.
	Err error
}

// Error is the text of the error.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the error.
func (e *ExitError) Unwrap() error { return e.Err }

// usageError is a mistake in the arguments.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(format string, arguments ...any) error {
	return usageError{fmt.Errorf(format, arguments...)}
}

// Report prints what is wrong, and returns the exit code: 0 for no error.
func Report(err error, to io.Writer) int {
	if err == nil {
		return 0
	}
	code := CodeTrouble
	if exit, ok := errors.AsType[*ExitError](err); ok {
		if code = exit.Code; exit.Err == nil {
			return code
		}
	} else if errors.Is(err, context.Canceled) {
		return CodeInterrupted
	}
	fmt.Fprintln(to, "error:", sentence.Printable(Explain(err)))
	return code
}

// Explain returns the text of an error, with what to do about it.
func Explain(err error) string {
	text := err.Error()
	var dns *net.DNSError
	switch {
	case clientcmd.IsEmptyConfig(err):
		return "no cluster is configured: set KUBECONFIG, or name a file with --kubeconfig"
	case apierrors.IsUnauthorized(err):
		return text + "; log in again, or choose another user with --context or --user"
	case apierrors.IsForbidden(err):
		return text + "; ask for this right, or choose a namespace with -n or another user with --context or --as"
	case apimeta.IsNoMatchError(err):
		return text + "; its CustomResourceDefinition is not installed"
	case utilnet.IsConnectionRefused(err), utilnet.IsTimeout(err), utilnet.IsConnectionReset(err), utilnet.IsProbableEOF(err), errors.As(err, &dns):
		return text + "; the API server cannot be reached: check the cluster of the current context, or choose another one with --context or --kubeconfig"
	case errors.Is(err, inspect.ErrNoTypes):
		return text + ": no operator that is built with Corbel is installed, or its CustomResourceDefinitions lack the category corbel; name the kind to look at it all the same"
	}
	return text
}
