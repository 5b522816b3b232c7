// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package helm renders Helm charts. What it returns is what helm template prints
// for the same chart and values, object by object: charts are read, values
// merged, templates given their data, and manifests sorted by the packages of
// Helm 4 itself.
//
// # Charts
//
// A chart is a folder of any fs.FS, or a packed file (*.tgz) in it. Sub-charts
// may be folders or packed, with conditions, tags, aliases and import-values;
// library charts, .helmignore, values.schema.json, requirements.yaml and the
// kubeVersion of a chart mean what they mean to Helm. The parameters, usually the
// spec of the component, take the place of a file with values.
//
// .Release holds the name and the namespace of the deployment, and the revision
// of the component. The first revision is the installation, all others are
// upgrades. .Capabilities are those of the target cluster, in a fixed order; an
// API whose server is down is still among them. lookup reads the target with the
// identity that the dependent objects are written with. The options can fix the
// capabilities, and switch lookup off.
//
// Objects may carry the annotations of the reconciler, such as
// <name>/apply-order. They win over those that this package sets.
//
// # What Helm does and this package says in annotations
//
// What is in the folders crds is applied and upgraded like everything else; with
// the option CRDsOnce it is left alone once it is there. Objects with
// helm.sh/resource-policy: keep get the delete policy orphan.
//
// Hooks become ordinary objects in waves before (pre-install, pre-upgrade) or
// after (post-install, post-upgrade) all others, ordered by their weights; those
// for deletions get run-on. Jobs and Pods run once in each revision that they are
// for, one after the other. One that fails is an error of the component that
// names it; the next revision runs it again. Hooks for tests and rollbacks are
// left out.
//
// # Where it differs from Helm
//
//   - Templates have no access to the network: getHostByName fails, where it
//     gives an empty text in Helm, and schemas cannot refer to URLs and files.
//   - Links in charts are refused, and so are packed charts that are damaged.
//   - Whole numbers of more than 53 bits in the parameters are refused, because
//     Helm would round them.
//   - Rendering is limited in depth, output, memory and time, see Limits and
//     Options.Timeout. Calls are limited to 512 levels, where Helm lets each
//     template call itself 1000 times.
//   - keys and values return things in the order of the keys, not in any order.
//   - Objects that Helm could not install, without a kind or a name for example,
//     are refused.
//   - Hooks belong to the component: they are deleted with it, unless
//     helm.sh/resource-policy says keep. What the delete policy hook-succeeded
//     deletes, it deletes when all hooks of the moment succeeded. A Job that
//     failed stays until the next revision, whatever hook-failed says, so that its
//     logs can be read.
//   - A Job or Pod that is a hook for several moments of one installation,
//     upgrade or deletion, or for both installation and deletion, is refused.
//   - Weights beyond 9999 count as 9999.
//
// # Determinism
//
// Some functions give something else with every call: now, uuidv4, shuffle, those
// that start with rand or gen, bcrypt and htpasswd. Objects that depend on them
// change with every rendering, and not only with an upgrade as in Helm. Charts
// that look the object up first, and keep what they gave, are not concerned.
package helm
