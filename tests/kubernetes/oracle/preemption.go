package main

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// preemptionRecorder stands between the preemption evaluator and the default preemption plugin. It changes nothing but
// the die: every node is a candidate, from the first, and it remembers each candidate's victims.
type preemptionRecorder struct {
	preemption.Interface
	evaluator  *preemption.Evaluator
	mutex      sync.Mutex
	candidates map[string]*extenderv1.Victims
}

// candidate is a node with the pods that would have to leave it.
type candidate struct {
	name    string
	victims *extenderv1.Victims
}

func (c candidate) Name() string                 { return c.name }
func (c candidate) Victims() *extenderv1.Victims { return c.victims }
func (c candidate) NumPodGroupDisruptions() int  { return 0 } // Kubernetes 1.37 asks

func recordPreemption(plugin *defaultpreemption.DefaultPreemption) *preemptionRecorder {
	recorder := &preemptionRecorder{Interface: plugin.Evaluator.Interface, evaluator: plugin.Evaluator}
	plugin.Evaluator.Interface = recorder
	evictNobody(plugin)
	return recorder
}

func (r *preemptionRecorder) GetOffsetAndNumCandidates(nodes int32) (int32, int32) {
	return 0, nodes
}

// remember keeps the victims on a node, if they would help.
func (r *preemptionRecorder) remember(node fwk.NodeInfo, victims []*v1.Pod, violations int, status *fwk.Status) {
	if status.IsSuccess() && len(victims) > 0 {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.candidates[node.Node().Name] = &extenderv1.Victims{Pods: victims, NumPDBViolations: int64(violations)}
	}
}

func (r *preemptionRecorder) reset() {
	r.candidates = map[string]*extenderv1.Victims{}
}

// trials is how often upstream's choice between two candidates is repeated to see whether it is one. It walks a map,
// so it takes either of two equal candidates half of the time: 64 trials miss a tie once in 2^63.
const trials = 64

// equallyGood gives the candidates, in node order, that upstream may choose for want of a difference from the one it chose.
func (r *preemptionRecorder) equallyGood(ctx context.Context, chosen string, nodeNames []string) []string {
	var equal []string
	for _, name := range nodeNames {
		if name == chosen || r.tied(ctx, chosen, name) {
			equal = append(equal, name)
		}
	}
	return equal
}

func (r *preemptionRecorder) tied(ctx context.Context, chosen, other string) bool {
	victims, found := r.candidates[other]
	if !found {
		return false
	}
	pair := []preemption.Candidate{candidate{chosen, r.candidates[chosen]}, candidate{other, victims}}
	for range trials {
		if r.evaluator.SelectCandidate(ctx, pair).Name() == other {
			return true
		}
	}
	return false
}
