// Command oracle asks kube-scheduler's own plugins about clusters.
//
// It reads scenarios (one JSON object a line) and writes what the scheduler framework, built from the unmodified
// upstream packages, says of every pending pod: one verdict line for each scenario.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// scenario is one line of FAMILY.scenarios.jsonl.
type scenario struct {
	ID       string            `json:"id"`
	Objects  []json.RawMessage `json:"objects"`
	Pending  []json.RawMessage `json:"pending"`
	Sequence bool              `json:"sequence"`
	Config   json.RawMessage   `json:"config"`
}

// verdict is one line of FAMILY.verdicts.jsonl.
type verdict struct {
	ID   string       `json:"id"`
	Pods []podVerdict `json:"pods"`
	// Invalid is why nothing was asked: the scheduler does not start with this configuration, or an object is none.
	Invalid string `json:"invalid,omitempty"`
}

// refusal is why a plugin said no.
type refusal struct {
	Plugin  string   `json:"plugin"`
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
}

// podVerdict is all that the scheduler said of one pending pod.
type podVerdict struct {
	Pod            string                      `json:"pod"`
	PreFilter      *refusal                    `json:"preFilter,omitempty"`
	Feasible       []string                    `json:"feasible"`
	Rejected       map[string]refusal          `json:"rejected,omitempty"`
	Scores         map[string]map[string]int64 `json:"scores,omitempty"`
	Total          map[string]int64            `json:"total,omitempty"`
	Best           []string                    `json:"best,omitempty"`
	Chosen         string                      `json:"chosen,omitempty"`
	Message        string                      `json:"message,omitempty"`
	Nominated      string                      `json:"nominated,omitempty"`
	Victims        []string                    `json:"victims,omitempty"`
	PreemptCode    string                      `json:"preemptCode,omitempty"`
	PreemptMessage string                      `json:"preemptMessage,omitempty"`
	// Allocations are the claims of a pod that was placed, by name; that for its extended resources is "extended".
	Allocations map[string]allocatedClaim `json:"allocations,omitempty"`
	// Error is what the scheduler says when it gives up on a pod for a failure, no refusal.
	Error string `json:"error,omitempty"`
}

// gates are the feature gates that are not at their default.
var gates = map[string]bool{string(features.SchedulerAsyncPreemption): false}

func main() {
	kept := flag.String("kept", "", "also write here the scenarios that were answered; those the scheduler could not answer are left out of both")
	ties := flag.Bool("ties", false, "say on standard error where several preemption candidates are equally good")
	timed := flag.Bool("bench", false, "place the pending pods of a bench workload, and print how fast that was")
	cel := flag.Bool("cel", false, "read selectors with devices (JSON lines) from standard input, and answer what cel-go makes of each")
	percentage := flag.Int("percentage", 0, "with -bench: percentageOfNodesToScore; 0 leaves it to the scheduler")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: oracle [-kept OUT.scenarios.jsonl[.gz]] IN.scenarios.jsonl[.gz] OUT.verdicts.jsonl[.gz]   (- is standard input or output)")
		fmt.Fprintln(os.Stderr, "       oracle -bench [-percentage N] WORKLOAD.json")
		fmt.Fprintln(os.Stderr, "       oracle -cel <QUESTIONS.jsonl >ANSWERS.jsonl")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *cel {
		if err := answerCEL(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if *timed != (flag.NArg() == 1) || !*timed && flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		fail(err)
	}
	metrics.Register()
	if *timed {
		if err := bench(flag.Arg(0), int32(*percentage)); err != nil {
			fail(err)
		}
		return
	}
	if err := run(flag.Arg(0), flag.Arg(1), *kept, *ties); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "oracle:", err)
	os.Exit(1)
}

func run(inPath, outPath, keptPath string, ties bool) error {
	in, err := openRead(inPath)
	if err != nil {
		return err
	}
	out, closeOut, err := openWrite(outPath)
	if err != nil {
		return err
	}
	var kept io.Writer = io.Discard
	closeKept := func() error { return nil }
	if keptPath != "" {
		if kept, closeKept, err = openWrite(keptPath); err != nil {
			return err
		}
	}
	reader := bufio.NewReaderSize(in, 1<<20)
	for {
		line, readErr := reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := answerLine(bytes.TrimSpace(line), out, kept, keptPath != "", ties); err != nil {
				return err
			}
		}
		if readErr == io.EOF {
			break
		}
		if readErr != nil {
			return readErr
		}
	}
	if err := closeOut(); err != nil {
		return err
	}
	return closeKept()
}

func answerLine(line []byte, out, kept io.Writer, skipFailed, ties bool) error {
	var s scenario
	if err := json.Unmarshal(line, &s); err != nil {
		return err
	}
	v, err := answer(s, ties)
	if err != nil {
		v = &verdict{ID: s.ID, Pods: []podVerdict{}, Invalid: err.Error()}
	}
	if failed := failure(v); failed != "" && skipFailed {
		fmt.Fprintf(os.Stderr, "left out %s: %s\n", s.ID, failed)
		return nil
	}
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	if _, err := out.Write(buf.Bytes()); err != nil {
		return err
	}
	_, err = kept.Write(append(line, '\n'))
	return err
}

// failure is what went wrong in a scenario, if anything did.
func failure(v *verdict) string {
	if v.Invalid != "" {
		return v.Invalid
	}
	for _, pod := range v.Pods {
		if pod.Error != "" {
			return pod.Pod + ": " + pod.Error
		}
	}
	return ""
}

func openRead(path string) (io.Reader, error) {
	if path == "-" {
		return os.Stdin, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(path, ".gz") {
		return gzip.NewReader(file)
	}
	return file, nil
}

func openWrite(path string) (io.Writer, func() error, error) {
	if path == "-" {
		return os.Stdout, func() error { return nil }, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, nil, err
	}
	if strings.HasSuffix(path, ".gz") {
		zipped := gzip.NewWriter(file)
		return zipped, func() error {
			if err := zipped.Close(); err != nil {
				return err
			}
			return file.Close()
		}, nil
	}
	return file, file.Close, nil
}
