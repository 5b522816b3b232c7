// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"cmp"
	"errors"
	"fmt"
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
	ends       bool   // containers end by themselves, after run, with exitCode
	run        time.Duration
	exitCode   int32
	reason     string // why containers end; empty if it follows from exitCode
	terminate  time.Duration
}

// behaviourOf reads a pod's annotations. If some cannot be understood, the pod's
// containers wait, and say why.
func behaviourOf(pod *corev1.Pod, t timing) behaviour {
	b := behaviour{start: t.start, run: t.run, terminate: t.terminate}
	b.ends = pod.Spec.RestartPolicy != corev1.RestartPolicyAlways && pod.Spec.RestartPolicy != ""
	var errs []error
	for name, value := range pod.Annotations {
		if name, ours := strings.CutPrefix(name, annotationPrefix); ours {
			if err := b.read(name, value); err != nil {
				errs = append(errs, fmt.Errorf("annotation %s%s: %w", annotationPrefix, name, err))
			}
		}
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
		b.reason = value
	case "log": // see logs.go
	case "exit-code":
		var code int64
		if code, err = strconv.ParseInt(value, 10, 32); err == nil && (code < 0 || code > 255) {
			err = fmt.Errorf("%d is not between 0 and 255", code)
		}
		b.ends, b.exitCode = true, int32(code)
	case "run-for":
		b.ends = true
		b.run, err = positive(value)
	case "terminate-after":
		b.terminate, err = positive(value)
	default:
		err = errors.New("unknown")
	}
	return err
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
