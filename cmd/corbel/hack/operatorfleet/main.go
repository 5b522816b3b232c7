// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Operatorfleet lets projects of corbel init --from-operator take over from Helm operators, and prints a table. For each operator in a
// folder it starts a control plane, runs the Helm operator until the components of the samples are deployed, replaces it by the project, and
// counts in the audit log what the project has written. Then it deletes the components.
//
// An operator is a folder with watches.yaml, helm-charts and config. The objects in its folder prerequisites are created first, in each namespace.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// fleet is a run.
type fleet struct {
	operators, old, corbel, work string
	count                        int
	both                         bool
}

func main() {
	var f fleet
	flag.StringVar(&f.operators, "operators", "", "the folder of the operators")
	flag.StringVar(&f.old, "old", "", "the program helm-operator of operator-sdk")
	flag.StringVar(&f.corbel, "corbel", "bin/corbel", "the command corbel")
	flag.StringVar(&f.work, "work", "", "a folder for projects and logs, which is kept; projects that it has are not made again")
	flag.IntVar(&f.count, "components", 3, "how many components of each kind are made, each in a namespace of its own")
	flag.BoolVar(&f.both, "both", false, "let the Helm operator run on while the project starts, and expect that the project names it and writes nothing meanwhile")
	only := flag.String("only", "", "operators, separated by commas; by default all")
	flag.Parse()
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := f.run(ctx, strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run tries the operators one after another.
func (f *fleet) run(ctx context.Context, only []string) (err error) {
	for _, path := range []*string{&f.work, &f.old, &f.corbel, &f.operators} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	files, _ := filepath.Glob(filepath.Join(f.operators, "*", "watches.yaml"))
	if _, err := os.Stat(f.old); err != nil || len(files) == 0 {
		return fmt.Errorf("%d operators are in %s, and the Helm operator is %s: name a folder of operators by -operators, and the program by -old", len(files), f.operators, f.old)
	}
	rows, sum := "", result{name: "all"}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		if len(only) > 0 && !slices.Contains(only, name) || ctx.Err() != nil {
			continue
		}
		t := &trial{fleet: f, folder: filepath.Join(f.operators, name), work: filepath.Join(f.work, name), result: result{name: name}}
		t.problem(t.run(ctx))
		fmt.Fprintln(os.Stderr, t.row())
		rows += t.row() + "\n"
		for n := range t.numbers {
			sum.numbers[n] += t.numbers[n]
		}
		sum.most = max(sum.most, t.most)
		sum.problems = append(sum.problems, t.problems...)
	}
	fmt.Println(head + rows + sum.row())
	return ctx.Err()
}

// result is a row of the table.
type result struct {
	name     string
	numbers  [11]int
	most     int // writes to one object
	problems []string
}

// The numbers of a result.
const (
	kinds = iota
	components
	objects
	hooks
	pods
	ready
	writes // to objects of the releases
	replaced
	edited
	hooksRun
	left
)

const head = "| operator | kinds | components | objects | hooks | pods | Ready | writes | pods replaced | specs changed | hooks run | left over | writes per object | most | problems |\n" +
	"|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"

func (r *result) row() string {
	return fmt.Sprintf("| %s | %s | %.2f | %d | %d %s |", r.name, strings.ReplaceAll(strings.Trim(fmt.Sprint(r.numbers), "[]"), " ", " | "),
		float64(r.numbers[writes])/float64(max(r.numbers[objects], 1)), r.most, len(r.problems), strings.Join(r.problems, "; "))
}

// problem notes an error, in one line.
func (r *result) problem(err error) {
	if err != nil {
		text := []rune(strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "|", "/")), " "))
		r.problems = append(r.problems, string(text[:min(len(text), 500)]))
	}
}

type object = *unstructured.Unstructured

// readFiles decodes the YAML documents of the files that match a pattern.
func readFiles(pattern ...string) (objects []object, err error) {
	files, err := filepath.Glob(filepath.Join(pattern...))
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		err = errors.Join(err, readErr)
		for reader := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
			o := &unstructured.Unstructured{}
			if decodeErr := reader.Decode(&o.Object); errors.Is(decodeErr, io.EOF) {
				break
			} else if decodeErr != nil {
				return nil, fmt.Errorf("%s: %w", file, decodeErr)
			}
			if o.GetKind() != "" {
				objects = append(objects, o)
			}
		}
	}
	return objects, err
}
