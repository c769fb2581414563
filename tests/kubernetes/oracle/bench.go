package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"
)

// workload is a file of bench/workloads.py.
type workload struct {
	Nodes   []json.RawMessage `json:"nodes"`
	Bound   []json.RawMessage `json:"bound"`
	Pending []json.RawMessage `json:"pending"`
	// Objects are the devices and the claims for them: a file of bench/devices.py.
	Objects []json.RawMessage `json:"objects"`
}

// timing is what `situate bench` prints, as far as the two can be compared.
type timing struct {
	Placed     int     `json:"placed"`
	Seconds    float64 `json:"seconds"`
	PodsPerSec float64 `json:"pods_per_s"`
	NodesUsed  int     `json:"nodes_used"`
	// PodsPerCPUSec does not depend on what else the machine does.
	PodsPerCPUSec float64 `json:"pods_per_cpu_s"`
}

// bench times kube-scheduler's algorithm alone: no API server, no queue, no binding. For every pod the snapshot is
// brought up to date, the pod is scheduled by the scheduler's own SchedulePod, and assumed in its cache. A pod with
// claims is reserved too, so that the next one finds its devices in use. Its claims are then assumed as if they had been
// written; that is not timed.
func bench(path string, percentage int32) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var w workload
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	c, err := decodeCluster(scenario{Objects: slices.Concat(w.Nodes, w.Bound, w.Objects), Pending: w.Pending})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := benchScheduler(ctx, c, percentage)
	if err != nil {
		return err
	}
	result, err := place(ctx, s, c.pending)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// benchScheduler is a whole scheduler whose cache is filled by hand; its informers see devices and claims alone.
func benchScheduler(ctx context.Context, c *cluster, percentage int32) (*scheduler.Scheduler, error) {
	cfg, err := latest.Default()
	if err != nil {
		return nil, err
	}
	var devices []runtime.Object
	claims := 0
	for _, obj := range c.all {
		switch obj.(type) {
		case *resourceapi.ResourceClaim:
			claims++
			devices = append(devices, obj)
		case *resourceapi.DeviceClass, *resourceapi.ResourceSlice:
			devices = append(devices, obj)
		}
	}
	client := fake.NewClientset(devices...)
	factory := informers.NewSharedInformerFactory(client, 0)
	s, err := scheduler.New(ctx, client, factory, nil,
		func(string) events.EventRecorderLogger { return noEvents{} },
		scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithPercentageOfNodesToScore(&percentage),
	)
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	manager := s.Profiles[v1.DefaultSchedulerName].SharedDRAManager()
	for known := -1; known < claims; time.Sleep(time.Millisecond) { // the scheduler's own cache of claims comes later
		listed, err := manager.ResourceClaims().List()
		if err != nil {
			return nil, err
		}
		known = len(listed)
	}
	logger := klog.FromContext(ctx)
	for _, node := range c.nodes {
		s.Cache.AddNode(logger, node)
	}
	for _, pod := range c.bound {
		if err := s.Cache.AddPod(logger, pod); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func place(ctx context.Context, s *scheduler.Scheduler, pending []*v1.Pod) (timing, error) {
	logger := klog.FromContext(ctx)
	profile := s.Profiles[v1.DefaultSchedulerName]
	snapshot, ok := profile.SnapshotSharedLister().(*schedulercache.Snapshot)
	if !ok {
		return timing{}, fmt.Errorf("the snapshot is a %T", profile.SnapshotSharedLister())
	}
	used := map[string]bool{}
	var result timing
	var spent time.Duration
	worked, err := cpuSeconds()
	if err != nil {
		return result, err
	}
	begin := time.Now()
	for _, pod := range pending {
		if err := s.Cache.UpdateSnapshot(logger, snapshot); err != nil {
			return result, err
		}
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			return result, err
		}
		state := framework.NewCycleState()
		found, err := s.SchedulePod(ctx, profile, state, &framework.QueuedPodInfo{PodInfo: info})
		if err != nil {
			continue
		}
		assumed := pod.DeepCopy()
		assumed.Spec.NodeName = found.SuggestedHost
		if err := s.Cache.AssumePod(logger, assumed); err != nil {
			return result, err
		}
		used[found.SuggestedHost] = true
		result.Placed++
		if len(pod.Spec.ResourceClaims) == 0 {
			continue
		}
		if status := profile.RunReservePluginsReserve(ctx, state, pod, found.SuggestedHost); !status.IsSuccess() {
			return result, status.AsError()
		}
		spent += time.Since(begin)
		if err := assumeClaims(profile.SharedDRAManager().ResourceClaims(), pod); err != nil {
			return result, err
		}
		begin = time.Now()
	}
	spent += time.Since(begin)
	result.Seconds = spent.Seconds()
	until, err := cpuSeconds()
	if err != nil {
		return result, err
	}
	result.PodsPerCPUSec = math.Round(float64(len(pending)) / (until - worked))
	result.PodsPerSec = math.Round(float64(len(pending)) / result.Seconds)
	result.NodesUsed = len(used)
	return result, nil
}

// cpuSeconds is what all threads have worked so far.
func cpuSeconds() (float64, error) {
	var used syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds(), err
}

// assumeClaims ends what Reserve began, as PreBind does once the claims are written.
func assumeClaims(claims fwk.ResourceClaimTracker, pod *v1.Pod) error {
	for _, entry := range pod.Status.ResourceClaimStatuses {
		claim, err := claims.Get(pod.Namespace, ptr.Deref(entry.ResourceClaimName, ""))
		if err != nil {
			return err
		}
		claim = claim.DeepCopy()
		claim.ResourceVersion = "2"
		claim.Status.Allocation = claims.GetPendingAllocation(claim.UID)
		if claim.Status.Allocation == nil {
			return fmt.Errorf("claim %s has no devices", claim.Name)
		}
		claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}}
		if err := claims.AssumeClaimAfterAPICall(claim); err != nil {
			return err
		}
		claims.MaybeRemoveClaimPendingAllocation(claim.UID, true)
	}
	return nil
}
