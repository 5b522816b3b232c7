// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package gotemplate renders manifests from Go templates, in the manner of Helm but without charts:
// a folder of *.yaml, *.yml, *.json and *.tpl files is enough.
//
// NewParameters makes a single file a transformer of parameters, and NewTexts is
// for generators that need the texts and not manifests.
//
// # Templates
//
// Every file is a template under its path in the file system, such as
// "templates/web.yaml". The files are rendered in the order of their paths, and
// the results read as YAML. Files with a name that starts with an underscore are not
// rendered; they are the place for {{define}}. All files share their
// definitions; defining a name twice is an error.
//
// # Data
//
//	.Values      the parameters, usually the spec of the component
//	.Release     Name and Namespace of the deployment, Revision of the component,
//	             IsInstall (until a revision was applied and ready, and in that one)
//	             and IsUpgrade, Service (name of the reconciler)
//	.Name        short for .Release.Name
//	.Namespace   short for .Release.Namespace
//	.Component   Name, Namespace, Digest, Revision, Labels and Annotations of the
//	             component; empty where the context has none
//	.Template    Name of the file and BasePath, the folder of the templates
//
// Whole numbers are integers, so that {{ eq .Values.replicas 3 }} works. A key
// that does not exist gives an empty text, or an error with Options.Strict.
//
// # Functions
//
// There are the functions of text/template and of the library sprig, and
//
//	include NAME DATA        the output of a template as a text
//	tpl TEXT DATA            the output of a text that is itself a template
//	required MESSAGE VALUE   the value, or an error with this message if it is nil or ""
//	lookup APIVERSION KIND NAMESPACE NAME
//	                         an object of the target cluster, or an empty map if it
//	                         does not exist; without a name, a list with "items"
//	toYaml toYamlPretty toJson fromYaml fromYamlArray fromJson fromJsonArray
//	mustToYaml mustToJson mustFromYaml mustFromYamlArray mustFromJson mustFromJsonArray
//
// The last ones are as in Helm: functions without "must" return an empty text, or a map with the
// key Error, or a list with the error, where the functions with "must" fail. Numbers that they read
// are integers if they are whole. Functions that want an integer, such as until and trunc, take any
// whole number.
//
// The functions env, expandenv and getHostByName fail: the output of a template depends on its data
// alone. Calls of lookup are the exception; they read as the user that writes the dependent
// objects, and can be switched off. A change of the objects that they read does not by itself cause
// a new rendering.
//
// Some functions of sprig return something else with every call: now and functions of the current
// time, uuidv4, shuffle, functions whose names start with rand or gen, bcrypt, htpasswd and
// encryptAES. The generator reports them (see manifests.NoteRandom and manifests.Now), and a
// component keeps their results for the whole of a revision. To keep a value over all revisions
// look the object up first, or use derivePassword. The functions keys and values return things in
// the order of the keys, and not in any order as in sprig.
//
// # Limits
//
// Templates, and values that reach tpl, may come from authors who do not own the operator. A
// rendering is therefore limited in depth, output, memory and work; manifests.TemplateLimits has
// the numbers, and until, for example, gives at most 100,000 of them. Functions with a result that
// can be much larger than their arguments compute its size first. To exceed a limit is an error.
//
// Options.Timeout limits the time. A rendering is interrupted at the next call of a template or a
// function, or round of a loop. A rendering that does not get there keeps running, and the
// generator refuses to render anything else until it has ended.
package gotemplate
