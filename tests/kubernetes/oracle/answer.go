package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
)

// answer asks about every pending pod of a scenario.
func answer(s scenario, ties bool) (*verdict, error) {
	c, err := decodeCluster(s)
	if err != nil {
		return nil, err
	}
	cfg, err := decodeConfig(s.Config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server, err := newAPIServer(ctx, c)
	if err != nil {
		return nil, err
	}
	schedulers := map[string]*profileScheduler{}
	for i := range cfg.Profiles {
		profile := &cfg.Profiles[i]
		if schedulers[profile.SchedulerName], err = newScheduler(ctx, server, c, profile); err != nil {
			return nil, err
		}
	}
	out := &verdict{ID: s.ID, Pods: []podVerdict{}}
	for _, pod := range c.pending {
		asked, found := schedulers[pod.Spec.SchedulerName]
		if !found {
			return nil, errNoProfile
		}
		said := asked.ask(ctx, pod)
		if ties && said.Nominated != "" {
			equal := asked.recorder.equallyGood(ctx, said.Nominated, asked.nodeNames)
			if len(equal) > 1 {
				fmt.Fprintln(os.Stderr, "tie", s.ID, said.Pod, equal)
			}
		}
		out.Pods = append(out.Pods, *said)
		if s.Sequence && said.Chosen != "" {
			for _, each := range schedulers {
				if err := each.bind(ctx, pod, said.Chosen); err != nil {
					return nil, err
				}
			}
		}
	}
	return out, nil
}

// ask runs one scheduling cycle for a pod: findNodesThatFitPod, prioritizeNodes and schedulingAlgorithm of upstream,
// but looking at every node, scoring even a single one, and writing everything down. Where upstream gives up, the verdict
// says so in Error.
func (s *profileScheduler) ask(ctx context.Context, pod *v1.Pod) *podVerdict {
	said := &podVerdict{Pod: pod.Namespace + "/" + pod.Name, Feasible: []string{}}
	if len(s.nodeNames) == 0 {
		said.Message = scheduler.ErrNoNodesAvailable.Error()
		return said
	}
	state := framework.NewCycleState()
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	feasible, err := s.filter(ctx, state, pod, &diagnosis, said)
	switch {
	case err != nil:
	case len(feasible) == 0:
		s.postFilter(ctx, state, pod, diagnosis, said)
	default:
		err = s.score(ctx, state, pod, feasible, said)
		if err == nil {
			said.Allocations, err = s.allocate(ctx, state, pod, said.Chosen)
		}
	}
	if err != nil && said.Error == "" {
		said.Error = err.Error()
	}
	return said
}

// filter gives the nodes that pass. A node on which a plugin fails is taken for refused, so that there is something to say
// of the others; upstream would end here, with that error. So do we if it is about devices: it is then about the pod's
// claims, and the comparison looks at nothing else.
func (s *profileScheduler) filter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, diagnosis *framework.Diagnosis, said *podVerdict) ([]fwk.NodeInfo, error) {
	result, status, pluginsWithNodes := s.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return nil, status.AsError()
		}
		diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		diagnosis.PreFilterMsg = status.Message()
		refused := asRefusal(status)
		said.PreFilter = &refused
		return nil, nil
	}
	if !result.AllNodes() {
		diagnosis.NodeToStatus.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
			fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(pluginsWithNodes))))
	}
	var feasible []fwk.NodeInfo
	for _, name := range s.nodeNames {
		if !result.AllNodes() && !result.NodeNames.Has(name) {
			continue
		}
		info, err := s.snapshot.Get(name)
		if err != nil {
			return nil, err
		}
		status := s.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
		switch {
		case status.IsSuccess():
			feasible = append(feasible, info)
			said.Feasible = append(said.Feasible, name)
		case status.IsRejected():
			diagnosis.NodeToStatus.Set(name, status)
			if said.Rejected == nil {
				said.Rejected = map[string]refusal{}
			}
			said.Rejected[name] = asRefusal(status)
		case status.Plugin() == dynamicresources.Name:
			said.Error = "" // of another plugin, on a node before this one
			maps.DeleteFunc(said.Rejected, func(_ string, why refusal) bool { return why.Code == fwk.Error.String() })
			return nil, status.AsError()
		default:
			if said.Error == "" {
				said.Error = status.AsError().Error()
			}
			own := status.AsError()
			if inner := errors.Unwrap(own); inner != nil {
				own = inner // without `running "X" filter plugin: `
			}
			diagnosis.NodeToStatus.Set(name, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, own.Error()))
			if said.Rejected == nil {
				said.Rejected = map[string]refusal{}
			}
			said.Rejected[name] = refusal{Plugin: status.Plugin(), Code: status.Code().String(), Reasons: []string{own.Error()}}
		}
	}
	return feasible, nil
}

func (s *profileScheduler) score(ctx context.Context, state fwk.CycleState, pod *v1.Pod, feasible []fwk.NodeInfo, said *podVerdict) error {
	if status := s.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		return status.AsError()
	}
	nodes, status := s.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		return status.AsError()
	}
	said.Scores = map[string]map[string]int64{}
	said.Total = map[string]int64{}
	highest := nodes[0].TotalScore
	for _, node := range nodes {
		said.Total[node.Name] = node.TotalScore
		highest = max(highest, node.TotalScore)
		for _, plugin := range node.Scores {
			if said.Scores[plugin.Name] == nil {
				said.Scores[plugin.Name] = map[string]int64{}
			}
			said.Scores[plugin.Name][node.Name] = plugin.Score
		}
	}
	for _, node := range nodes {
		if node.TotalScore == highest {
			said.Best = append(said.Best, node.Name)
		}
	}
	said.Chosen = said.Best[0]
	return nil
}

func (s *profileScheduler) postFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, diagnosis framework.Diagnosis, said *podVerdict) {
	fitError := &framework.FitError{Pod: pod, NumAllNodes: len(s.nodeNames), Diagnosis: diagnosis}
	if !s.HasPostFilterPlugins() {
		said.Message = fitError.Error()
		return
	}
	if s.recorder != nil {
		s.recorder.reset()
	}
	s.writes.lose.Store(true)
	result, status := s.RunPostFilterPlugins(ctx, state, pod, diagnosis.NodeToStatus)
	s.writes.lose.Store(false)
	fitError.Diagnosis.PostFilterMsg = status.Message()
	said.Message = fitError.Error()
	said.PreemptCode = status.Code().String()
	said.PreemptMessage = status.Message()
	if result == nil || result.NominatingInfo == nil || result.NominatedNodeName == "" {
		return
	}
	said.Nominated = result.NominatedNodeName
	if s.recorder == nil || s.recorder.candidates[said.Nominated] == nil {
		return
	}
	said.Nominated = s.recorder.equallyGood(ctx, said.Nominated, s.nodeNames)[0]
	for _, victim := range s.recorder.candidates[said.Nominated].Pods {
		if victim.DeletionTimestamp != nil {
			continue // On its way out already: kube-scheduler does not evict it again.
		}
		said.Victims = append(said.Victims, victim.Namespace+"/"+victim.Name)
	}
	sort.Strings(said.Victims)
}

func asRefusal(status *fwk.Status) refusal {
	reasons := append([]string{}, status.Reasons()...)
	sort.Strings(reasons)
	return refusal{Plugin: status.Plugin(), Code: status.Code().String(), Reasons: reasons}
}
