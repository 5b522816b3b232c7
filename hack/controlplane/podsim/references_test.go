// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// objects are the keys of Secrets and ConfigMaps by kind, namespace and name.
type objects map[string]keys

func (o objects) find(kind, namespace, name string) (keys, bool) {
	found, ok := o[kind+" "+namespace+"/"+name]
	return found, ok
}

func TestPodsNeedWhatTheyReferTo(t *testing.T) {
	named := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	variable := func(source corev1.EnvVarSource) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &source}} }
	}
	variables := func(source corev1.EnvFromSource) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.Containers[0].EnvFrom = []corev1.EnvFromSource{source} }
	}
	volume := func(source corev1.VolumeSource) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}}
			s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
		}
	}
	secretKey := func(name, key string, optional bool) func(*corev1.PodSpec) {
		return variable(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named(name), Key: key, Optional: &optional}})
	}
	configMapKey := func(name, key string, optional bool) func(*corev1.PodSpec) {
		return variable(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named(name), Key: key, Optional: &optional}})
	}
	secretVolume := func(name string, optional bool, items ...string) func(*corev1.PodSpec) {
		source := &corev1.SecretVolumeSource{SecretName: name, Optional: &optional}
		for _, key := range items {
			source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: key})
		}
		return volume(corev1.VolumeSource{Secret: source})
	}
	configMapVolume := func(name string, optional bool, items ...string) func(*corev1.PodSpec) {
		source := &corev1.ConfigMapVolumeSource{LocalObjectReference: named(name), Optional: &optional}
		for _, key := range items {
			source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: key})
		}
		return volume(corev1.VolumeSource{ConfigMap: source})
	}
	projected := volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		{Secret: &corev1.SecretProjection{LocalObjectReference: named("gone")}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("c"), Items: []corev1.KeyToPath{{Key: "gone"}}}},
	}}})
	const (
		ready    = "Running Initialized Ready main:running"
		creating = "Pending Initialized main:ContainerCreating"
		config   = "Pending Initialized main:CreateContainerConfigError"
	)
	exist := objects{"Secret ns/s": {"k": true}, "ConfigMap ns/c": {"k": true, "binary": false}}

	for _, test := range []struct {
		name    string
		refer   func(*corev1.PodSpec)
		want    string
		message string   // of the container's state
		warns   []string // reason and message
	}{
		{"a key of a Secret", secretKey("s", "k", false), ready, "", nil},
		{"a Secret that does not exist", secretKey("gone", "k", false), config, `secret "gone" not found`, nil},
		{"a key that a Secret does not have", secretKey("s", "gone", false), config, "couldn't find key gone in Secret ns/s", nil},
		{"an optional Secret", secretKey("gone", "k", true), ready, "", nil},
		{"an optional key of a Secret", secretKey("s", "gone", true), ready, "", nil},
		{"a key of a ConfigMap", configMapKey("c", "k", false), ready, "", nil},
		{"a ConfigMap that does not exist", configMapKey("gone", "k", false), config, `configmap "gone" not found`, nil},
		{"a key that a ConfigMap does not have", configMapKey("c", "gone", false), config, "couldn't find key gone in ConfigMap ns/c", nil},
		{"a binary key of a ConfigMap in a variable", configMapKey("c", "binary", false), config, "couldn't find key binary in ConfigMap ns/c", nil},
		{"all keys of a Secret", variables(corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("s")}}), ready, "", nil},
		{"all keys of a Secret that does not exist", variables(corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("gone")}}), config, `secret "gone" not found`, nil},
		{"all keys of a ConfigMap that does not exist", variables(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named("gone")}}), config, `configmap "gone" not found`, nil},
		{"all keys of an optional ConfigMap", variables(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named("gone"), Optional: new(true)}}), ready, "", nil},

		{"a volume of a Secret", secretVolume("s", false, "k"), ready, "", nil},
		{"a volume of a Secret that does not exist", secretVolume("gone", false), creating, "",
			[]string{`FailedMount: MountVolume.SetUp failed for volume "v" : secret "gone" not found`}},
		{"a volume of a key that a Secret does not have", secretVolume("s", false, "k", "gone"), creating, "",
			[]string{`FailedMount: MountVolume.SetUp failed for volume "v" : references non-existent secret key: gone`}},
		{"a volume of an optional Secret", secretVolume("gone", true, "k"), ready, "", nil},
		{"a volume of a ConfigMap that does not exist", configMapVolume("gone", false), creating, "",
			[]string{`FailedMount: MountVolume.SetUp failed for volume "v" : configmap "gone" not found`}},
		{"a volume of a binary key of a ConfigMap", configMapVolume("c", false, "binary"), ready, "", nil},
		{"a volume of a key that a ConfigMap does not have", configMapVolume("c", false, "gone"), creating, "",
			[]string{`FailedMount: MountVolume.SetUp failed for volume "v" : configmap references non-existent config key: gone`}},
		{"a volume of several objects", projected, creating, "",
			[]string{`FailedMount: MountVolume.SetUp failed for volume "v" : [secret "gone" not found, configmap references non-existent config key: gone]`}},
		{"a volume that no container mounts", func(s *corev1.PodSpec) { secretVolume("gone", false)(s); s.Containers[0].VolumeMounts = nil }, ready, "", nil},

		{"an init container", func(s *corev1.PodSpec) {
			secretKey("gone", "k", false)(s)
			s.InitContainers = []corev1.Container{s.Containers[0]}
			s.InitContainers[0].Name, s.Containers[0].Env = "setup", nil
		}, "Pending setup:CreateContainerConfigError main:PodInitializing", `secret "gone" not found`, nil},
		{"an image is pulled before", func(s *corev1.PodSpec) {
			secretKey("gone", "k", false)(s)
			s.Containers[0].Image = "web:broken"
		}, "Pending Initialized main:ImagePullBackOff", `Back-off pulling image "web:broken": not found`, nil},
		{"pull secrets that do not exist", func(s *corev1.PodSpec) {
			s.ImagePullSecrets = []corev1.LocalObjectReference{named("b"), named("s"), named("a")}
		}, ready, "", []string{"FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (b, a); attempting to pull the image may not succeed."}},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := testPod(corev1.RestartPolicyAlways, "web:1")
			pod.Namespace = "ns"
			test.refer(&pod.Spec)
			status, again, warnings := nextStatus(pod, testTiming, pastOf(pod, testBound), testBound.Add(time.Second), testIPs, exist.find)
			if got := brief(status); got != test.want {
				t.Errorf("the pod is\n\t%s, want\n\t%s", got, test.want)
			}
			if got := waitsFor(status); got != test.message {
				t.Errorf("it says %q, want %q", got, test.message)
			}
			var warns []string
			for _, w := range warnings {
				warns = append(warns, w.reason+": "+w.message)
			}
			if !slices.Equal(warns, test.warns) {
				t.Errorf("the warnings are\n\t%q, want\n\t%q", warns, test.warns)
			}
			if held := test.want == creating || strings.Contains(test.want, configError); held != (again == lookAgain) {
				t.Errorf("it is looked at again after %s", again)
			}
			if sandbox := status.PodIP != ""; sandbox == (test.want == creating) {
				t.Errorf("the address of the pod is %q", status.PodIP)
			}
		})
	}
}

// waitsFor returns the first message of a container that waits.
func waitsFor(status corev1.PodStatus) string {
	for _, c := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		if c.State.Waiting != nil && c.State.Waiting.Message != "" {
			return c.State.Waiting.Message
		}
	}
	return ""
}

// A step is what is seen of a pod at a time, after Secrets were created and deleted.
type step struct {
	at              string
	created, delete string
	want            string
}

func TestPodsStartWhenWhatTheyReferToAppears(t *testing.T) {
	refers := func(pod *corev1.Pod) *corev1.Pod {
		c := &pod.Spec.Containers[0]
		c.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "key"}, Key: "k",
		}}}}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "v"}}
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "volume"}}}}
		return pod
	}
	const always, never = corev1.RestartPolicyAlways, corev1.RestartPolicyNever
	withInit := func(policy corev1.RestartPolicy, annotations ...string) *corev1.Pod {
		pod := testPod(policy, "web:1", annotations...)
		pod.Spec.InitContainers = []corev1.Container{{Name: "setup", Image: "setup:1"}}
		return pod
	}
	for _, test := range []struct {
		name  string
		pod   *corev1.Pod
		steps []step
	}{
		{"one after the other", refers(testPod(always, "web:1", "ready-after", "2s")), []step{
			{"1s", "", "", "Pending Initialized main:ContainerCreating"},
			{"10s", "volume", "", "Pending Initialized main:CreateContainerConfigError"},
			{"20s", "key", "", "Running Initialized main:running"},
			{"21s", "", "", "Running Initialized main:running"},
			{"22s", "", "", "Running Initialized Ready main:running"},
		}},
		{"a container that runs goes on without", refers(testPod(always, "web:1")), []step{
			{"0s", "volume", "", "Pending Initialized main:ContainerCreating"},
			{"1s", "key", "", "Running Initialized Ready main:running"},
			{"10s", "", "key", "Running Initialized Ready main:running"},
			{"11s", "", "volume", "Running Initialized Ready main:running"},
		}},
		{"a container that is started again needs its variables, and no mount", refers(testPod(always, "web:1", "exit-code", "1")), []step{
			{"0s", "volume", "", "Pending Initialized main:ContainerCreating"},
			{"400ms", "key", "", "Running Initialized Ready main:running"},
			{"500ms", "", "volume", "Running Initialized main:CrashLoopBackOff"},
			{"600ms", "", "key", "Running Initialized main:CrashLoopBackOff"},
			{"1500ms", "", "", "Running Initialized main:CreateContainerConfigError"},
			{"5s", "key", "", "Running Initialized Ready main:running#1"},
			{"5200ms", "", "", "Running Initialized main:CrashLoopBackOff#1"},
			{"7200ms", "", "", "Running Initialized Ready main:running#2"},
		}},
		{"an init container that fails is started again, later and later", withInit(always, "exit-code", "setup=3"), []step{
			{"300ms", "", "", "Pending setup:running main:PodInitializing"},
			{"500ms", "", "", "Pending setup:CrashLoopBackOff main:PodInitializing"},
			{"1500ms", "", "", "Pending setup:running#1 main:PodInitializing"},
			{"1700ms", "", "", "Pending setup:CrashLoopBackOff#1 main:PodInitializing"},
			{"3600ms", "", "", "Pending setup:CrashLoopBackOff#1 main:PodInitializing"},
			{"3700ms", "", "", "Pending setup:running#2 main:PodInitializing"},
		}},
		{"an init container that fails once and for all", withInit(never, "exit-code", "setup=3"), []step{
			{"300ms", "", "", "Pending setup:running main:PodInitializing"},
			{"500ms", "", "", "Failed setup:Error(3) main:PodInitializing"},
			{"1h", "", "", "Failed setup:Error(3) main:PodInitializing"},
		}},
		{"an init container that takes its time", withInit(always, "exit-code", "setup=0", "run-for", "5s"), []step{
			{"5s", "", "", "Pending setup:running main:PodInitializing"},
			{"5300ms", "", "", "Running Initialized Ready setup:Completed(0) main:running"},
		}},
		{"one container of a pod fails", testPod(always, "web:1", "exit-code", "main=2"), []step{
			{"500ms", "", "", "Running Initialized main:CrashLoopBackOff"},
		}},
		{"a container that the pod does not have", testPod(always, "web:1", "exit-code", "other=2"), []step{
			{"1s", "", "", "Pending Initialized main:InvalidSimulation"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod, exist := test.pod.DeepCopy(), objects{}
			pod.Namespace = "ns"
			p := pastOf(pod, testBound)
			for _, s := range test.steps {
				if s.created != "" {
					exist["Secret ns/"+s.created] = keys{"k": true}
				}
				delete(exist, "Secret ns/"+s.delete)
				elapsed, err := time.ParseDuration(s.at)
				if err != nil {
					t.Fatal(err)
				}
				pod.Status, _, _ = nextStatus(pod, testTiming, p, testBound.Add(elapsed), testIPs, exist.find)
				if got := brief(pod.Status); got != s.want {
					t.Fatalf("at %s the pod is\n\t%s, want\n\t%s", s.at, got, s.want)
				}
			}
		})
	}
}

func TestASimulatorThatIsStartedAgainKeepsTheStatusOfPods(t *testing.T) {
	for name, annotations := range map[string][]string{
		"a server":  nil,
		"a crash":   {"exit-code", "1", "run-for", "1s"},
		"a failure": {"exit-code", "setup=1", "run-for", "1s"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := testPod(corev1.RestartPolicyAlways, "web:1", annotations...)
			pod.Spec.InitContainers = []corev1.Container{{Name: "setup", Image: "setup:1"}, {Name: "sidecar", Image: "proxy:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
			timing := testTiming
			timing.start = 0 // the API stores whole seconds
			p := pastOf(pod, testBound)
			for elapsed := time.Duration(0); elapsed < 20*time.Second; elapsed += 250 * time.Millisecond {
				now := testBound.Add(elapsed)
				pod.Status, _, _ = nextStatus(pod, timing, p, now, testIPs, nothing)
				next, _, _ := nextStatus(pod, timing, pastOf(pod, testBound), now, testIPs, nothing)
				if brief(next) != brief(pod.Status) {
					t.Fatalf("after %s the pod was\n\t%s, and is\n\t%s", elapsed, brief(pod.Status), brief(next))
				}
			}
		})
	}
}

func TestACacheHoldsNoValues(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "1", Annotations: map[string]string{"a": "secret"}}
	for _, object := range []any{
		&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"k": []byte("secret")}},
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"k": "secret"}, BinaryData: map[string][]byte{"b": []byte("secret")}},
	} {
		kept, err := forgetValues(object)
		if err != nil {
			t.Fatal(err)
		}
		switch o := kept.(type) {
		case *corev1.Secret:
			if value, ok := o.Data["k"]; !ok || value != nil || o.Name != "a" || o.Annotations != nil {
				t.Errorf("the cache has %v", o)
			}
		case *corev1.ConfigMap:
			_, binary := o.BinaryData["b"]
			if value, ok := o.Data["k"]; !ok || !binary || value != "" || o.BinaryData["b"] != nil || o.Annotations != nil {
				t.Errorf("the cache has %v", o)
			}
		}
	}
}
