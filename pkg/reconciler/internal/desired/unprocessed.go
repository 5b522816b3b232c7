// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"strings"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// checkUnprocessed refuses manifests that another tool has to process before the API server gets
// them: hooks that package helm has not given a time, and objects that SOPS has encrypted.
func (i *item) checkUnprocessed(name string) {
	annotations := stringsOf(i.content, "annotations")
	hook, isHook := annotations[helmHook]
	_, ordered := annotations[name+"/"+v1alpha1.AnnotationApplyOrder]
	_, waits := annotations[name+"/"+v1alpha1.AnnotationRunOn]
	// Helm applies the definitions of the folder crds, whatever the value of this annotation of
	// Helm 2.
	if isHook && hook != "crd-install" && !ordered && !waits {
		i.mistake("annotation %s: %q: only package helm runs hooks of charts, and this object would be applied with all others: "+
			"render the chart with helm.New, leave the object out, or say when it runs by the annotation %s/%s or %s/%s",
			helmHook, hook, name, v1alpha1.AnnotationRunOn, name, v1alpha1.AnnotationApplyOrder)
	}
	if isEncrypted(i.content) || i.hasEncryptedData() {
		i.mistake("is encrypted by SOPS: %s", decryptFirst)
	}
}

const helmHook = "helm.sh/hook"

const decryptFirst = "decrypt its file first, for example with the option Decryptor of kustomize.New, which takes a folder of plain YAML, too; " +
	"or let the spec refer to a Secret that exists"

// isEncrypted reports whether SOPS has encrypted the document that is this content. The kinds
// that operators decrypt in the cluster are all called SopsSecret or alike.
func isEncrypted(content map[string]any) bool {
	sops, _ := content["sops"].(map[string]any)
	kind, _ := content["kind"].(string)
	return (sops["mac"] != nil || sops["lastmodified"] != nil) && !strings.HasPrefix(kind, "Sops")
}

// hasEncryptedData reports whether SOPS has encrypted a value of a ConfigMap or Secret. The metadata
// of SOPS are lost if the object is made of an encrypted file or was an element of a list.
func (i *item) hasEncryptedData() bool {
	if gk := i.key.GroupKind(); gk != kindSecret && gk != kindConfigMap {
		return false
	}
	for _, field := range []string{"data", "binaryData"} {
		values, _ := i.content[field].(map[string]any)
		for _, value := range values {
			text, _ := value.(string)
			// The second one is the beginning of the first one in base64.
			if strings.HasPrefix(text, "ENC[AES256_GCM,data:") || strings.HasPrefix(text, "RU5DW0FFUzI1Nl9HQ00sZGF0") {
				return true
			}
		}
	}
	return false
}
