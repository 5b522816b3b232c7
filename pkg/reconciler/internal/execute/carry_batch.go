// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

// jobLabels are the labels that the server puts on a Job's pods, so that the
// Job finds them by the selector that the server makes as well.
var jobLabels = []string{
	"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name",
}

// carryJob carries the selector and the labels that go with it. A Job that
// queues suspend and resume stays as it is, unless the manifest says otherwise.
func carryJob(body, live map[string]any) {
	spec, liveSpec := child(body, "spec"), inner(live, "spec")
	if spec == nil {
		return
	}
	keepMissing(spec, liveSpec, "suspend")
	if manual, _ := spec["manualSelector"].(bool); manual {
		return
	}
	keepMissing(spec, liveSpec, "selector")
	labels := child(child(child(spec, "template"), "metadata"), "labels")
	if labels != nil {
		keepMissing(labels, inner(liveSpec, "template", "metadata", "labels"), jobLabels...)
	}
}
