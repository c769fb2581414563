//go:build !kube137

// What the oracle calls differently in version 1.36 of Kubernetes.

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	fwk "k8s.io/kube-scheduler/framework"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func newCache(ctx context.Context) schedulercache.Cache {
	return schedulercache.New(ctx, nil, false)
}

// versionOptions are the options of a framework that only this version has.
func versionOptions(snapshot *schedulercache.Snapshot) []frameworkruntime.Option {
	return nil
}

// sliceTrackerOptions leave out DeviceTaintRules, which this version does not read by default.
func sliceTrackerOptions(client *fake.Clientset, factory informers.SharedInformerFactory) resourceslicetracker.Options {
	return resourceslicetracker.Options{
		EnableConsumableCapacity: true,
		SliceInformer:            factory.Resource().V1().ResourceSlices(),
		KubeClient:               client,
	}
}

// evictNobody lets victims stay.
func evictNobody(plugin *defaultpreemption.DefaultPreemption) {
	plugin.Executor.PreemptPod = func(context.Context, preemption.Candidate, preemption.ExecutorPreemptor, *v1.Pod, string) error {
		return nil
	}
}

func (r *preemptionRecorder) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo,
	pdbs []*policy.PodDisruptionBudget) ([]*v1.Pod, int, *fwk.Status) {
	victims, violations, status := r.Interface.SelectVictimsOnNode(ctx, state, pod, node, pdbs)
	r.remember(node, victims, violations, status)
	return victims, violations, status
}
