// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/status"
)

//go:embed shop.yaml
var shopManifest string

// shopKey is the Shop of the manifest.
var shopKey = client.ObjectKey{Namespace: "market", Name: "corner"}

// shopName is what the commands call it.
const shopName = "shop/corner"

// The Jobs that are hooks of the chart.
const (
	migrationJob = "corner-migration"
	backupJob    = "corner-backup"
)

// minMarked is fewer than the objects of a Shop with three pods for each of three
// deployments: 13 of the chart without its hooks, and the pods.
const minMarked = 20

// step is a part of the story. It fails if what it says does not happen.
type step struct {
	title string
	run   func(*demo, context.Context) error
}

var story = []step{
	{"Start the operator", (*demo).install},
	{"Create a Shop: a migration runs, then its objects are created in waves, each after the one before is ready", (*demo).create},
	{"Create an Advert: it requires the Shop, and takes its address", (*demo).advertise},
	{"Create a second Shop, and delete it again: both share the definition of promotions, which stays", (*demo).shareTypes},
	{"Plan to scale the Shop to three replicas, and do it", (*demo).scale},
	{"Break the Shop with an image that does not exist: the front end, which is in the next wave, stays as it is", (*demo).breakImage},
	{"Correct it", (*demo).correct},
	{"Break it once more, with rollbackOnFailure: it goes back by itself", (*demo).goBack},
	{"Look at the history, and roll the Shop back to its first revision", (*demo).rollBack},
	{"Limit the memory of the cache, for which neither the Shop nor its chart has a field: with a patch", (*demo).patchCache},
	{"Delete one object of the Shop by hand, and change another: both are repaired", (*demo).repair},
	{"Delete the Advert, then the Shop: a backup runs, then nothing of it stays", (*demo).remove},
}

func (d *demo) install(ctx context.Context) error {
	if err := d.kubectl(ctx, "", "apply", "-f", "examples/shop/config/crd"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "wait", "--for=condition=Established", "crd/shops.shop.example.com", "crd/adverts.shop.example.com"); err != nil {
		return err
	}
	operator, err := startOperator(d.env, filepath.Join(d.root, "bin", "shop"))
	d.operator = operator
	if err == nil {
		d.screen.say("the operator runs, as process %d", operator.command.Process.Pid)
	}
	return err
}

func (d *demo) create(ctx context.Context) error {
	for _, command := range [][]string{
		{"create", "namespace", shopKey.Namespace},
		{"-n", shopKey.Namespace, "create", "secret", "generic", ownSecret, "--from-literal=password=swordfish"},
	} {
		if err := d.kubectl(ctx, "", command...); err != nil {
			return err
		}
	}
	runs, err := countRuns(d.env.Config(), shopKey.Namespace)
	if err != nil {
		return err
	}
	d.runs = runs
	if err := d.kubectl(ctx, shopManifest, "apply", "-f", "-"); err != nil {
		return err
	}
	if err := d.untilReady(ctx, 2); err != nil {
		return err
	}
	return d.hasRun(ctx, migrationJob, 1, "it is a hook of the chart for the installation, and for every change")
}

func (d *demo) shareTypes(ctx context.Context) error {
	if err := d.kubectl(ctx, strings.Replace(shopManifest, "name: "+shopKey.Name, "name: harbour", 1), "apply", "-f", "-"); err != nil {
		return err
	}
	for _, command := range [][]string{
		{"-n", shopKey.Namespace, "wait", "--for=condition=Ready", "--timeout=5m", "shop/harbour"},
		{"get", "crd", "--selector", sharedLabel, "--show-labels"},
		{"-n", shopKey.Namespace, "delete", "shop", "harbour", "--timeout=5m"},
		{"-n", shopKey.Namespace, "get", "promotion", shopKey.Name + "-of-the-week"},
	} {
		if err := d.kubectl(ctx, "", command...); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) scale(ctx context.Context) error {
	output, _, err := d.corbel(ctx, strings.Replace(shopManifest, "replicas: 2", "replicas: 3", 1), 0, "plan", "-f", "-")
	if err != nil {
		return err
	}
	if !strings.Contains(output, "spec.replicas  2 → 3") {
		return errors.New("the plan does not say that the replicas change")
	}
	if err := d.patchShop(ctx, `{"spec":{"replicas":3}}`); err != nil {
		return err
	}
	if err := d.untilReady(ctx, 3); err != nil {
		return err
	}
	return d.hasRun(ctx, migrationJob, 2, "for the installation, and for this change")
}

func (d *demo) breakImage(ctx context.Context) error {
	if err := d.patchShop(ctx, `{"spec":{"image":"registry.example.com/shop:broken"}}`); err != nil {
		return err
	}
	if err := d.awaitReason(ctx, "ImagePullBackOff"); err != nil {
		return err
	}
	web, err := d.object(ctx, "apps/v1", "Deployment", shopKey.Name+"-web")
	if err != nil {
		return err
	}
	if status.Analyze(web, status.Options{}).Readiness != status.Ready {
		return errors.New("the front end is broken, too")
	}
	return d.why(ctx, "registry.example.com/shop:broken")
}

func (d *demo) correct(ctx context.Context) error {
	if err := d.patchShop(ctx, `{"spec":{"image":"registry.example.com/shop:1.1"}}`); err != nil {
		return err
	}
	return d.untilReady(ctx, 3)
}

func (d *demo) remove(ctx context.Context) error {
	if err := d.kubectl(ctx, "", "-n", shopKey.Namespace, "delete", "advert", "sale", "--timeout=1m"); err != nil {
		return err
	}
	before, types, err := d.leftovers(ctx)
	if err != nil {
		return err
	}
	if len(before) < minMarked {
		return fmt.Errorf("the search for leftovers cannot be trusted: of a running Shop it finds only %v", before)
	}
	d.screen.say("%d objects in %d types are there because of the Shop, with those that Kubernetes derives, such as pods", len(before), types)
	if _, _, err := d.corbel(ctx, "", 0, "delete", shopName); err != nil {
		return err
	}
	if err := d.hasRun(ctx, backupJob, 1, "it is a hook of the chart for the time before the deletion"); err != nil {
		return err
	}
	if err := d.hasRun(ctx, migrationJob, 8, "neither the repairs nor the deletion needed it"); err != nil {
		return err
	}
	d.screen.say("the Shop is gone; looking for anything left of it, in every type of the cluster")
	types, err = d.untilClean(ctx)
	if err == nil {
		d.screen.say("none of %d types has one: no pods, Jobs or PersistentVolumeClaims; Secret %s, which is ours, is still there", types, ownSecret)
	}
	return err
}

// patchShop changes the Shop as its user would.
func (d *demo) patchShop(ctx context.Context, patch string) error {
	return d.kubectl(ctx, "", "-n", shopKey.Namespace, "patch", "shop", shopKey.Name, "--type=merge", "--patch="+patch)
}

// untilReady waits until the Shop is Ready and its deployments have that many
// pods that are ready, whatever the Shop says.
func (d *demo) untilReady(ctx context.Context, replicas int64) error {
	start := time.Now()
	if _, _, err := d.corbel(ctx, "", 0, "wait", shopName); err != nil {
		return err
	}
	took := time.Since(start)
	if err := d.hasReplicas(ctx, replicas); err != nil {
		return err
	}
	d.screen.say("Ready after %.1f s", took.Seconds())
	_, _, err := d.corbel(ctx, "", 0, "tree", shopName)
	return err
}

// hasReplicas expects the deployments of a Shop that is Ready to have so many pods that are ready.
func (d *demo) hasReplicas(ctx context.Context, replicas int64) error {
	for _, part := range []string{"web", "api", "worker"} {
		deployment, err := d.object(ctx, "apps/v1", "Deployment", shopKey.Name+"-"+part)
		if err != nil {
			return err
		}
		if ready, _, _ := unstructured.NestedInt64(deployment.Object, "status", "readyReplicas"); ready != replicas {
			return fmt.Errorf("the Shop is Ready, but Deployment %s has %d of %d replicas ready", part, ready, replicas)
		}
	}
	return nil
}
