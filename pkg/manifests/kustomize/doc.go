// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package kustomize renders kustomizations. It builds with the library behind the command
// kustomize, and its output equals the output of "kustomize build" with the load restrictor off: a
// kustomization may use any file below the root of the file system that it is read from, and
// nothing else.
//
// # Restrictions
//
// The operator builds files of other authors. Therefore every field of every kustomization that
// holds a path is checked before the build, and refused with file and field if it leads
//
//   - to another machine: URLs and git repositories,
//   - out of the root, be it by "..", an absolute path or a symbolic link,
//   - to code: Helm charts, which would run the program helm, and functions and plugins that are
//     not built in. Charts are the business of the Helm generator, functions the business of
//     package krm.
//
// The configurations of built-in generators, transformers and validators are checked in the same
// way. They may stand in the field, in files, or in folders with a kustomization that does nothing
// but list files: any other field could make paths that are not checked.
//
// The build works on a copy of the files in memory. No environment variable is read, no process
// started, no packet sent. There is a second barrier behind the checks: the library sees only
// kustomizations that were checked, as they were checked, with all paths in them marked as paths of
// files. So it fetches nothing even if a check is wrong.
//
// # Where there is no kustomization
//
// A folder without a kustomization gets one, with all *.yaml and *.yml files below it, and the
// folders below it that have one. Empty files are left out, and so are files that the ignore file
// names, which is .corbelignore in the root and follows the rules of .gitignore. Ignored files are
// no templates either, but kustomizations can refer to them.
//
// # Templates
//
// With Options.Templates, files are Go templates, with the data and functions of
// package gotemplate and three more: readFile PATH, existsFile PATH and listFiles
// PATTERN give files below the root, as they were before rendering. The
// kustomization itself may be a template; it is checked after it was rendered.
//
// # Limits
//
// A build is limited in time, in its output, and in how much its files may refer to and expand to,
// see Limits. Results are kept: the same files are not built twice in a row. A build that sets an
// OpenAPI schema of its own excludes all other builds in the process while it runs, because the
// library keeps the schema in a global variable.
package kustomize
