// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package helm renders Helm charts. It returns the objects that helm template prints for the same
// chart and values. There is one difference: a label or annotation of null is the empty string,
// which the API server makes of it.
//
// The packages of Helm 4 itself read charts, choose sub-charts, merge values, prepare the data of
// templates, and split and sort manifests. Its engine also decides on the order of the templates.
// The templates themselves are run by an executor of this module, because templates of Helm can
// neither be counted nor interrupted while they include each other; and schemas are checked here,
// because Helm would load their references from the network.
//
// # Charts
//
// A chart is a folder of any fs.FS, or a packed file (*.tgz) in it. Sub-charts may be folders or
// packed, with conditions, tags, aliases and import-values; library charts, .helmignore,
// values.schema.json, requirements.yaml and the kubeVersion of a chart have the same meaning as in
// Helm. The parameters, usually the spec of the component, replace a file with values.
//
// .Release holds the name and the namespace of the deployment, and the revision of the component. A
// revision is an installation as long as no earlier one was applied and ready, and all others are
// upgrades: also when nothing in the component changed, but the operator comes with another chart.
// .Capabilities are the capabilities of the target cluster, in a fixed order. An API with a server
// that is down is still among them, with the kinds that it had; but after a restart of the operator
// without them, until that server is back. lookup reads the target as the user that writes the
// dependent objects. The options can fix the capabilities, and switch lookup off.
//
// Objects may carry the annotations of the reconciler, such as <name>/apply-order. They take
// precedence over the annotations that this package sets.
//
// # Treatment of hooks, resource policies and CRDs
//
// Objects in the folders crds are applied and upgraded like all other objects; with the option
// CRDsOnce they are not changed once they exist. Objects with helm.sh/resource-policy: keep are
// orphaned; the reconciler reads this annotation in the manifests of all generators.
//
// Hooks become ordinary objects in waves before (pre-install, pre-upgrade) or after (post-install,
// post-upgrade) all other objects, ordered by their weights; hooks for deletions get run-on. Jobs
// and Pods run once in each revision that they are for, one after the other. A Job or Pod that
// fails is an error of the component that names it; the next revision runs it again. After an
// installation that failed, the next revision is an installation, too, where helm upgrade would
// leave out the hooks that are only for installations: all hooks for installations run in it, also
// hooks that succeeded before. Hooks for rollbacks run when a component is rolled back. Hooks for
// tests are left out.
//
// A Job or Pod that is a hook for several moments runs at each of them. Helm uses
// one name for all these runs. Here the first keeps the name; if it also runs after
// the ordinary objects, or before or after a deletion, that run is an object called
// <name>-post, <name>-pre-delete or <name>-post-delete.
//
// Hooks of other kinds last. A hook that is for installations only is left as it is by upgrades,
// also if its template has changed by then; a hook that is for upgrades only does not exist before
// the first upgrade.
//
// # Order
//
// Charts may say in which order their objects are applied, as HIP-0025 of Helm proposes it. No
// release of Helm does so yet; here it needs no option. Objects of one resource group
// (helm.sh/resource-group) are applied when all groups are ready that they, or other objects of
// their group, depend on (helm.sh/depends-on/resource-groups: a list of names, as YAML or JSON in a
// text, or separated by commas). Groups without dependencies that nothing depends on, and objects
// in no group, come after them. So does a group that depends on a missing group; that is logged.
// Groups count within one chart.
//
// In Chart.yaml, the field depends-on of a dependency names the sub-charts that are ready before
// the dependency is applied, and the annotation helm.sh/depends-on/subcharts names the sub-charts
// that are ready before the objects of the chart itself. They go by their name or alias; to name a
// sub-chart that the chart does not have is an error, and to name a disabled one is not. Otherwise
// charts and sub-charts are applied together.
//
// Objects that are applied later are deleted earlier. Circles are errors that name them. The
// annotation with two slashes in its name is removed from the objects, because no API server
// accepts it. Annotations for readiness (helm.sh/readiness-success) are not read; use
// <name>/ready-when. Hooks are in no group.
//
// # Caches
//
// A chart is parsed once for all generators with the same files, and a text that a
// template gives is read once for all components, as long as it is kept. The templates
// are executed every time, because they may look something up.
//
// # Where it differs from Helm
//
//   - Templates have no access to the network: getHostByName fails, where it
//     gives an empty text in Helm, and schemas cannot refer to URLs and files.
//   - Symbolic links in the folder of a chart are followed within the file system. A broken link is
//     left out, and so is a link that leads out of the file system, unless Helm loads its file
//     itself, such as a template: then it is refused. So is a folder or file of a chart that is
//     itself such a link. For a folder that other users can write to while it is read, use the file
//     system of an os.Root: a link that is put there after the look at a path leads out of any
//     other one.
//   - Links in packed charts are refused, and so are packed charts that are damaged, or
//     with packed sub-charts of more than 100 MiB at all levels together.
//   - A hook for a moment that neither Helm nor Helm 2 knows is an error, where Helm
//     leaves it out.
//   - Numbers beyond 64 bits in rendered manifests are refused, where Helm rounds them.
//   - Whole numbers of more than 53 bits in the parameters are refused, because
//     Helm would round them.
//   - Rendering is limited in depth, output, memory, work and time;
//     manifests.TemplateLimits and Options.Timeout have the numbers. Calls are limited
//     to 512 levels, where Helm lets each template call itself 1000 times, and lists to
//     100,000 items, where Helm's until has no end.
//   - fromToml gives an error for a text with more than 100,000 brackets, and Files.Glob for
//     a pattern with so many wildcards that Helm's matcher would take very long.
//   - keys and values return things in the order of the keys, not in any order.
//   - Objects that Helm could not install, without a kind or a name for example,
//     are refused.
//   - Lists are split into their items; Helm prints them, and installs their items.
//   - Hooks belong to the component: they are deleted with it, unless helm.sh/resource-policy is
//     keep. The delete policy hook-succeeded deletes its objects when all hooks of the moment
//     succeeded. A Job that failed stays until the next revision, also with hook-failed, so that
//     its logs can be read.
//   - Weights beyond 9999 count as 9999.
//
// # Secrets
//
// Helm warns through the standard logger about most values with types that are in conflict, such as
// a text where a chart has a table by default. These warnings name the fields. There is none about
// a field at the top of the values of a chart that has a table there: the text replaces the table,
// and the templates fail or not. A schema of the values (values.schema.json) refuses such values.
// Values are hidden in the warnings, but for true and false. The message of a failing template
// (fail, required) is the error of the rendering, as the chart has put it.
//
// # Determinism
//
// Some functions return something else with every call: now, uuidv4, shuffle, functions whose names
// start with rand or gen, bcrypt and htpasswd. The generator reports them (see manifests.NoteRandom
// and manifests.Now), and a component keeps their results for the whole of a revision, as Helm does
// until the next upgrade. Charts that look the object up first, and reuse the value, keep it over
// all revisions.
package helm
