//go:build kube137

// What the oracle calls differently in version 1.37 of Kubernetes.

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// The API server fills in pod-level requests when a pod is created, no longer with the other defaults. Here objects are
// taken as they would be stored, so they are filled in with the others all the same.
func init() {
	gates[string(features.PodLevelResourcesFixDefaulting)] = false
}

func newCache(ctx context.Context) schedulercache.Cache {
	return schedulercache.New(ctx, nil, false, false)
}

// versionOptions are the options of a framework that only this version has.
func versionOptions(snapshot *schedulercache.Snapshot) []frameworkruntime.Option {
	return []frameworkruntime.Option{frameworkruntime.WithMutableSnapshotLister(snapshot)}
}

func sliceTrackerOptions(client *fake.Clientset, factory informers.SharedInformerFactory) resourceslicetracker.Options {
	return resourceslicetracker.Options{
		EnableDeviceTaintRules:   true,
		EnableConsumableCapacity: true,
		SliceInformer:            factory.Resource().V1().ResourceSlices(),
		TaintInformer:            factory.Resource().V1().DeviceTaintRules(),
		KubeClient:               client,
	}
}

// evictNobody lets victims stay.
func evictNobody(plugin *defaultpreemption.DefaultPreemption) {
	plugin.Executor.PreemptPod = func(context.Context, preemption.Candidate, preemption.ExecutorPreemptor, *v1.Pod, string) (bool, error) {
		return false, nil
	}
}

func (r *preemptionRecorder) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo,
	possible []*preemption.DomainVictim, pdbs []*policy.PodDisruptionBudget) ([]*v1.Pod, int, *fwk.Status) {
	victims, violations, status := r.Interface.SelectVictimsOnNode(ctx, state, pod, node, possible, pdbs)
	r.remember(node, victims, violations, status)
	return victims, violations, status
}
