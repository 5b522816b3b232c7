// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

const tokenType = "kubernetes.io/service-account-token"

// isToken tells whether a Secret is one that a controller fills with a token.
func isToken(manifest map[string]any) bool { return manifest["type"] == tokenType }

// carryToken carries the token: without it the controller would issue another
// one, and the first would end to be valid for those who use it.
func carryToken(body, live map[string]any) {
	if data, liveData := child(body, "data"), inner(live, "data"); data != nil {
		keepMissing(data, liveData, "token", "ca.crt", "namespace")
	}
	if annotations := child(child(body, "metadata"), "annotations"); annotations != nil {
		keepMissing(annotations, inner(live, "metadata", "annotations"), "kubernetes.io/service-account.uid")
	}
}
