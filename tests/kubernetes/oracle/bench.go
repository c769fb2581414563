package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// workload is a file of bench/workloads.py.
type workload struct {
	Nodes   []json.RawMessage `json:"nodes"`
	Bound   []json.RawMessage `json:"bound"`
	Pending []json.RawMessage `json:"pending"`
}

// timing is what `situate bench` prints, as far as the two can be compared.
type timing struct {
	Placed     int     `json:"placed"`
	Seconds    float64 `json:"seconds"`
	PodsPerSec float64 `json:"pods_per_s"`
	NodesUsed  int     `json:"nodes_used"`
}

// bench times kube-scheduler's algorithm alone: no API server, no queue, no binding. For every pod the snapshot is
// brought up to date, the pod is scheduled by the scheduler's own SchedulePod, and assumed in its cache.
func bench(path string, percentage int32) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var w workload
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	c, err := decodeCluster(scenario{Objects: append(w.Nodes, w.Bound...), Pending: w.Pending})
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

// benchScheduler is a whole scheduler whose cache is filled by hand; its informers see an empty cluster.
func benchScheduler(ctx context.Context, c *cluster, percentage int32) (*scheduler.Scheduler, error) {
	cfg, err := latest.Default()
	if err != nil {
		return nil, err
	}
	client := fake.NewClientset()
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
	begin := time.Now()
	for _, pod := range pending {
		if err := s.Cache.UpdateSnapshot(logger, snapshot); err != nil {
			return result, err
		}
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			return result, err
		}
		found, err := s.SchedulePod(ctx, profile, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
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
	}
	result.Seconds = time.Since(begin).Seconds()
	result.PodsPerSec = math.Round(float64(len(pending)) / result.Seconds)
	result.NodesUsed = len(used)
	return result, nil
}
