package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
	"k8s.io/utils/ptr"
)

// allocatedClaim is what the verdict says of one claim of a pod that was placed.
type allocatedClaim struct {
	// Extended is whether the scheduler made the claim for the pod's extended resources.
	Extended bool              `json:"extended,omitempty"`
	Devices  []allocatedDevice `json:"devices"`
	// Nodes is the node selector as JSON; none: all nodes.
	Nodes string `json:"nodes,omitempty"`
}

// allocatedDevice leaves out the share id, which is random.
type allocatedDevice struct {
	Request          string            `json:"request"`
	Driver           string            `json:"driver"`
	Pool             string            `json:"pool"`
	Device           string            `json:"device"`
	AdminAccess      *bool             `json:"adminAccess,omitempty"`
	ConsumedCapacity map[string]string `json:"consumedCapacity,omitempty"`
}

// claimWrites stands between the scheduler and the fake API server's claims. It numbers their versions, because the
// scheduler's cache needs them, and loses what PostFilter writes: a verdict does not depend on earlier refusals.
type claimWrites struct {
	version atomic.Int64
	lose    atomic.Bool
}

func (w *claimWrites) react(action clienttesting.Action) (bool, runtime.Object, error) {
	var written runtime.Object
	switch a := action.(type) {
	case clienttesting.CreateAction: // an update looks the same
		written = a.GetObject()
	default:
		return action.GetVerb() == "delete" && w.lose.Load(), nil, nil
	}
	accessor, err := meta.Accessor(written)
	if err != nil {
		return true, nil, err
	}
	accessor.SetResourceVersion(fmt.Sprint(w.version.Add(1) + 1))
	if accessor.GetName() == "" {
		accessor.SetName(accessor.GetGenerateName() + "0")
		accessor.SetUID(types.UID("cu-" + accessor.GetName()))
	}
	return w.lose.Load(), written, nil
}

// deviceManager is the scheduler's own, and waits for what it has written itself.
type deviceManager struct {
	fwk.SharedDRAManager
	claims *claimTracker
}

func (m deviceManager) ResourceClaims() fwk.ResourceClaimTracker { return m.claims }

// claimTracker remembers what is in flight.
type claimTracker struct {
	fwk.ResourceClaimTracker
	signalled []types.UID
}

func (t *claimTracker) SignalClaimPendingAllocation(uid types.UID, claim *resourceapi.ResourceClaim) error {
	t.signalled = append(t.signalled, uid)
	return t.ResourceClaimTracker.SignalClaimPendingAllocation(uid, claim)
}

// AssumeClaimAfterAPICall does not fail if the informer is late: the scheduler would ask again after a second.
func (t *claimTracker) AssumeClaimAfterAPICall(claim *resourceapi.ResourceClaim) error {
	for tries := 0; ; tries++ {
		err := t.ResourceClaimTracker.AssumeClaimAfterAPICall(claim)
		if !errors.Is(err, assumecache.ErrNotFound) || tries == 50_000 {
			return err
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// settle ends what is still in flight of claims that are written.
func (t *claimTracker) settle() {
	for _, uid := range t.signalled {
		t.MaybeRemoveClaimPendingAllocation(uid, true)
	}
	t.signalled = nil
}

// newDeviceManager follows scheduler.New. `synced` is whether it has heard of everything.
func newDeviceManager(ctx context.Context, c *cluster, client *fake.Clientset, factory informers.SharedInformerFactory) (manager deviceManager, synced func() bool, err error) {
	logger := klog.FromContext(ctx)
	claimInformer := factory.Resource().V1().ResourceClaims().Informer()
	claimCache := assumecache.NewAssumeCache(logger, claimInformer, "ResourceClaim", "", nil)
	slices, err := resourceslicetracker.StartTracker(ctx, sliceTrackerOptions(client, factory))
	if err != nil {
		return manager, nil, err
	}
	own := dynamicresources.NewDRAManager(ctx, claimCache, slices, factory)
	claims := 0
	mapped, ok := own.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache)
	if !ok {
		return manager, nil, fmt.Errorf("extended resources are mapped by a %T", own.DeviceClassResolver())
	}
	for _, obj := range c.all {
		switch o := obj.(type) {
		case *resourceapi.ResourceClaim:
			claims++
		case *resourceapi.DeviceClass:
			mapped.OnAdd(o, true) // in the order of the objects: which class has a name depends on it
		}
	}
	manager = deviceManager{own, &claimTracker{ResourceClaimTracker: own.ResourceClaims()}}
	synced = func() bool {
		known, err := own.ResourceClaims().List()
		return err == nil && len(known) == claims && slices.HasSynced()
	}
	return manager, synced, nil
}

func (s *profileScheduler) newDynamicResources(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	plugin, err := dynamicresources.New(ctx, args, handle, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
	if err != nil {
		return nil, err
	}
	var ok bool
	if s.devices, ok = plugin.(*dynamicresources.DynamicResources); !ok {
		return nil, fmt.Errorf("the plugin is a %T", plugin)
	}
	return plugin, nil
}

// allocate has the plugin reserve a pod's claims on a node and write them, and tells what is written. It does not wait
// until devices are ready to be used.
func (s *profileScheduler) allocate(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) (map[string]allocatedClaim, error) {
	if s.devices == nil || !s.devices.Reserve(ctx, state, pod, node).IsSuccess() {
		return nil, nil
	}
	ctx, s.recordEvents.waiting = context.WithCancel(ctx)
	defer s.recordEvents.waiting()
	s.devices.PreBind(ctx, state, pod, node)
	s.manager.claims.settle()
	return s.allocations(ctx, pod)
}

func (s *profileScheduler) allocations(ctx context.Context, pod *v1.Pod) (map[string]allocatedClaim, error) {
	written, err := s.client.ResourceV1().ResourceClaims(pod.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := map[string]allocatedClaim{}
	for i := range written.Items {
		claim := &written.Items[i]
		extended := claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "true"
		if claim.Status.Allocation == nil || !isReservedFor(claim, pod) || !extended && !isNamed(claim, pod) {
			continue
		}
		said, err := asAllocated(claim.Status.Allocation)
		if err != nil {
			return nil, err
		}
		name := claim.Name
		if extended {
			name, said.Extended = "extended", true
		}
		found[name] = said
	}
	return found, nil
}

func isReservedFor(claim *resourceapi.ResourceClaim, pod *v1.Pod) bool {
	for _, user := range claim.Status.ReservedFor {
		if user.UID == pod.UID {
			return true
		}
	}
	return false
}

func isNamed(claim *resourceapi.ResourceClaim, pod *v1.Pod) bool {
	for _, entry := range pod.Spec.ResourceClaims {
		if ptr.Deref(entry.ResourceClaimName, "") == claim.Name {
			return true
		}
	}
	for _, entry := range pod.Status.ResourceClaimStatuses {
		if ptr.Deref(entry.ResourceClaimName, "") == claim.Name {
			return true
		}
	}
	return false
}

func asAllocated(allocation *resourceapi.AllocationResult) (allocatedClaim, error) {
	var said allocatedClaim
	if allocation.NodeSelector != nil {
		nodes, err := json.Marshal(allocation.NodeSelector)
		if err != nil {
			return said, err
		}
		said.Nodes = string(nodes)
	}
	for _, result := range allocation.Devices.Results {
		device := allocatedDevice{Request: result.Request, Driver: result.Driver, Pool: result.Pool, Device: result.Device, AdminAccess: result.AdminAccess}
		for name, amount := range result.ConsumedCapacity {
			if device.ConsumedCapacity == nil {
				device.ConsumedCapacity = map[string]string{}
			}
			device.ConsumedCapacity[string(name)] = amount.String()
		}
		said.Devices = append(said.Devices, device)
	}
	return said, nil
}
