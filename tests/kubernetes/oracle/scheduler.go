package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// apiServer is a fake one with the objects of a cluster, and what all profiles share to watch it.
type apiServer struct {
	client  *fake.Clientset
	factory informers.SharedInformerFactory
	writes  *claimWrites
	manager deviceManager
	waits   *handlerTracker
}

func newAPIServer(ctx context.Context, c *cluster) (*apiServer, error) {
	client := fake.NewClientset(c.all...)
	a := &apiServer{client: client, factory: informers.NewSharedInformerFactory(client, 0), writes: &claimWrites{}}
	client.PrependReactor("*", "resourceclaims", a.writes.react)
	a.waits = trackHandlers(a.factory)
	var err error
	a.manager, a.waits.devices, err = newDeviceManager(ctx, c, client, a.factory)
	return a, err
}

// profileScheduler is one profile's framework over one cluster. Only the loop around the framework is ours.
type profileScheduler struct {
	framework.Framework
	*apiServer
	cache        schedulercache.Cache
	snapshot     *schedulercache.Snapshot
	nodeNames    []string
	recorder     *preemptionRecorder
	devices      *dynamicresources.DynamicResources
	recordEvents *eventRecorder
}

// newScheduler follows scheduler.New, without the queue's loop and without event handlers: the cache is filled here,
// in the order of the objects, so that nothing depends on the order in which informers deliver.
func newScheduler(ctx context.Context, a *apiServer, c *cluster, profile *config.KubeSchedulerProfile) (*profileScheduler, error) {
	logger := klog.FromContext(ctx)
	s := &profileScheduler{
		apiServer:    a,
		cache:        newCache(ctx),
		snapshot:     schedulercache.NewEmptySnapshot(),
		recordEvents: &eventRecorder{},
	}
	registry := plugins.NewInTreeRegistry()
	registry[defaultpreemption.Name] = s.newPreemption
	registry[dynamicresources.Name] = s.newDynamicResources
	options := append(versionOptions(s.snapshot),
		frameworkruntime.WithClientSet(a.client),
		frameworkruntime.WithEventRecorder(s.recordEvents),
		frameworkruntime.WithInformerFactory(a.factory),
		frameworkruntime.WithSharedDRAManager(a.manager),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(a.factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithSnapshotSharedLister(s.snapshot),
		frameworkruntime.WithPodNominator(queue.NewSchedulingQueue(nil, a.factory)),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
		frameworkruntime.WithPodGroupManager(s.cache),
	)
	var err error
	s.Framework, err = frameworkruntime.NewFramework(ctx, registry, profile, options...)
	if err != nil {
		return nil, err
	}
	a.factory.Start(ctx.Done())
	if err := a.waits.wait(ctx, a.factory); err != nil {
		return nil, err
	}
	for _, node := range c.nodes {
		s.cache.AddNode(logger, node)
		s.nodeNames = append(s.nodeNames, node.Name)
	}
	for _, pod := range c.bound {
		if err := s.cache.AddPod(logger, pod); err != nil {
			return nil, err
		}
	}
	return s, s.cache.UpdateSnapshot(logger, s.snapshot)
}

func (s *profileScheduler) newPreemption(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	plugin, err := defaultpreemption.New(ctx, args, handle, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
	if err != nil {
		return nil, err
	}
	s.recorder = recordPreemption(plugin)
	return plugin, nil
}

// bind puts a pod on a node, as the next pending pod of a sequence is to see it.
func (s *profileScheduler) bind(ctx context.Context, pod *v1.Pod, node string) error {
	logger := klog.FromContext(ctx)
	bound := pod.DeepCopy()
	bound.Spec.NodeName = node
	bound.Status.Phase = v1.PodRunning
	if err := s.cache.AddPod(logger, bound); err != nil {
		return err
	}
	return s.cache.UpdateSnapshot(logger, s.snapshot)
}

// handlerTracker knows when what listens to the volume informers has heard everything: the scheduler's assume caches
// are filled by such handlers, after the informers themselves have synced.
type handlerTracker struct {
	registrations []cache.ResourceEventHandlerRegistration
	devices       func() bool
}

type trackedInformer struct {
	cache.SharedIndexInformer
	tracker *handlerTracker
}

func (i trackedInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	registration, err := i.SharedIndexInformer.AddEventHandler(handler)
	if err == nil {
		i.tracker.registrations = append(i.tracker.registrations, registration)
	}
	return registration, err
}

func trackHandlers(factory informers.SharedInformerFactory) *handlerTracker {
	tracker := &handlerTracker{}
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	factory.InformerFor(&v1.PersistentVolume{}, func(client clientset.Interface, resync time.Duration) cache.SharedIndexInformer {
		return trackedInformer{coreinformers.NewPersistentVolumeInformer(client, resync, cache.Indexers{}), tracker}
	})
	factory.InformerFor(&v1.PersistentVolumeClaim{}, func(client clientset.Interface, resync time.Duration) cache.SharedIndexInformer {
		return trackedInformer{coreinformers.NewPersistentVolumeClaimInformer(client, metav1.NamespaceAll, resync, indexers), tracker}
	})
	return tracker
}

func (t *handlerTracker) wait(ctx context.Context, factory informers.SharedInformerFactory) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("the informer of %v did not sync", kind)
		}
	}
	return wait.PollUntilContextCancel(ctx, time.Millisecond, true, func(context.Context) (bool, error) {
		for _, registration := range t.registrations {
			if !registration.HasSynced() {
				return false, nil
			}
		}
		return t.devices(), nil
	})
}

// eventRecorder throws events away. The one event that a pod waits for its devices ends the waiting.
type eventRecorder struct {
	noEvents
	waiting context.CancelFunc
}

func (r *eventRecorder) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...interface{}) {
	if reason == "BindingConditionsPending" {
		r.waiting()
	}
}
func (r *eventRecorder) WithLogger(klog.Logger) events.EventRecorderLogger { return r }

// noEvents throws events away.
type noEvents struct{}

func (noEvents) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...interface{}) {
}
func (n noEvents) WithLogger(klog.Logger) events.EventRecorderLogger { return n }

var errNoProfile = errors.New("the configuration has no profile for the pod's schedulerName")
