package main

import (
	"encoding/json"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

// cluster is a scenario's objects, decoded and defaulted as the API server would have stored them.
type cluster struct {
	nodes   []*v1.Node
	bound   []*v1.Pod
	pending []*v1.Pod
	all     []runtime.Object // everything, for the fake API server
}

func decodeCluster(s scenario) (*cluster, error) {
	c := &cluster{}
	for _, raw := range s.Objects {
		obj, err := decodeObject(raw)
		if err != nil {
			return nil, err
		}
		switch o := obj.(type) {
		case *v1.Node:
			c.nodes = append(c.nodes, o)
		case *v1.Pod:
			// The scheduler does not watch pods that have ended.
			ended := o.Status.Phase == v1.PodSucceeded || o.Status.Phase == v1.PodFailed
			if o.Spec.NodeName != "" && !ended {
				c.bound = append(c.bound, o)
			}
		case *resourceapi.ResourceClaim:
			o.ResourceVersion = "1" // the scheduler's cache compares versions
		}
		c.all = append(c.all, obj)
	}
	for _, raw := range s.Pending {
		obj, err := decodeObject(raw)
		if err != nil {
			return nil, err
		}
		pod, ok := obj.(*v1.Pod)
		if !ok {
			return nil, errors.New("a pending object is not a Pod")
		}
		c.pending = append(c.pending, pod)
		c.all = append(c.all, pod)
	}
	return c, nil
}

func decodeObject(raw json.RawMessage) (runtime.Object, error) {
	obj, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	legacyscheme.Scheme.Default(obj)
	return stored(obj)
}

// stored gives an object as the API server would hand it out: written and read again, so that quantities are canonical.
// The scheduler changes some in place that are not (0.5Gi, kept as a big decimal), and never meets those in a cluster.
func stored(obj runtime.Object) (runtime.Object, error) {
	written, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	read, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(written, nil, nil)
	return read, err
}

// decodeConfig does what kube-scheduler does with --config, or without it.
func decodeConfig(raw json.RawMessage) (*config.KubeSchedulerConfiguration, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return latest.Default()
	}
	obj, gvk, err := configscheme.Codecs.UniversalDecoder().Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	cfg, ok := obj.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("config is %s, not a KubeSchedulerConfiguration", gvk)
	}
	cfg.TypeMeta.APIVersion = gvk.GroupVersion().String()
	if err := validation.ValidateKubeSchedulerConfiguration(cfg); err != nil {
		return nil, err
	}
	return cfg, nil
}
