// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package helmrelease reads the records that Helm 3 and 4 keep of a release.
//
// A record is the Secret sh.helm.release.v1.NAME.vREVISION in the namespace of the release or, with the other
// storage of Helm, a ConfigMap of the same name. Its entry "release" is the release as JSON, compressed by gzip, in
// base64. No request here writes.
package helmrelease
