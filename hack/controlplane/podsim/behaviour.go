// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const annotationPrefix = "podsim.corbel.run/"

// timing is how long things take that no annotation says.
type timing struct {
	start     time.Duration // from binding to the start of containers
	run       time.Duration // of containers that are meant to end
	terminate time.Duration // from deletion to the end of containers
}

// A behaviour is what a pod appears to do.
type behaviour struct {
	start      time.Duration
	readyAfter time.Duration // after the start
	neverReady bool
	waiting    string // the reason why containers do not start; empty if they do
	message    string // what the containers' state says about waiting
	end        end    // what annotations say of the end of containers
	ending     string // the only container with this end; if it is empty, all but init containers have it
	task       end    // the end of containers of which annotations say nothing
	terminate  time.Duration
}

// An end is how containers end by themselves, if they do.
type end struct {
	ends     bool
	run      time.Duration
	exitCode int32
	reason   string // empty if it follows from exitCode
}

// behaviourOf reads a pod's annotations. If some cannot be understood, the pod's
// containers wait, and say why.
func behaviourOf(pod *corev1.Pod, t timing) behaviour {
	task := end{ends: pod.Spec.RestartPolicy != corev1.RestartPolicyAlways && pod.Spec.RestartPolicy != "", run: t.run}
	b := behaviour{start: t.start, end: task, task: task, terminate: t.terminate}
	var errs []error
	for name, value := range pod.Annotations {
		if name, ours := strings.CutPrefix(name, annotationPrefix); ours {
			if err := b.read(name, value); err != nil {
				errs = append(errs, fmt.Errorf("annotation %s%s: %w", annotationPrefix, name, err))
			}
		}
	}
	if b.ending != "" && !slices.ContainsFunc(allContainers(pod), func(c corev1.Container) bool { return c.Name == b.ending }) {
		errs = append(errs, fmt.Errorf("annotation %sexit-code: there is no container %s", annotationPrefix, b.ending))
	}
	if err := errors.Join(errs...); err != nil {
		b.waiting, b.message = "InvalidSimulation", err.Error()
	}
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		b.terminate = min(b.terminate, time.Duration(*grace)*time.Second)
	}
	return b
}

func (b *behaviour) read(name, value string) (err error) {
	switch name {
	case "ready-after":
		b.readyAfter, err = positive(value)
	case "never-ready":
		b.neverReady, err = strconv.ParseBool(value)
	case "waiting":
		if value == "" {
			return errors.New("the reason is empty")
		}
		b.waiting, b.message = value, cmp.Or(b.message, "set by an annotation")
	case "message":
		b.message = value
	case "reason":
		b.end.reason = value
	case "log": // see logs.go
	case "exit-code":
		if container, rest, named := strings.Cut(value, "="); named {
			b.ending, value = container, rest
		}
		var code int64
		if code, err = strconv.ParseInt(value, 10, 32); err == nil && (code < 0 || code > 255) {
			err = fmt.Errorf("%d is not between 0 and 255", code)
		}
		b.end.ends, b.end.exitCode = true, int32(code)
	case "run-for":
		b.end.ends = true
		b.end.run, err = positive(value)
	case "terminate-after":
		b.terminate, err = positive(value)
	default:
		err = errors.New("unknown")
	}
	return err
}

// endOf returns how a container ends that is not an init container.
func (b behaviour) endOf(name string) end {
	if b.ending == "" || b.ending == name {
		return b.end
	}
	return b.task
}

// endOfInit returns how an init container ends: with success and at once, unless annotations name it.
func (b behaviour) endOfInit(c corev1.Container) end {
	if b.ending == c.Name {
		return b.end
	}
	return end{ends: !isSidecar(c)}
}

func isSidecar(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// allContainers returns the init containers of a pod, then the others.
func allContainers(pod *corev1.Pod) []corev1.Container {
	return slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
}

func positive(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err == nil && d < 0 {
		err = fmt.Errorf("%s is negative", value)
	}
	return d, err
}

// brokenImage reports whether an image is one of those that cannot be pulled.
func brokenImage(image string) bool {
	image, _, _ = strings.Cut(image, "@")
	return strings.Contains(image, "does-not-exist") || strings.HasSuffix(image, ":broken")
}
