package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"
)

// celQuestion is one line of what -cel reads: a selector and the device that it is asked about.
type celQuestion struct {
	Expression string    `json:"expression"`
	Device     celDevice `json:"device"`
	// ListAttributes is the feature of Kubernetes 1.37 that makes attributes dynamic.
	ListAttributes bool `json:"listAttributes"`
}

type celDevice struct {
	Driver                   string                                                    `json:"driver"`
	AllowMultipleAllocations bool                                                      `json:"allowMultipleAllocations"`
	Attributes               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes"`
	Capacity                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity"`
}

// celAnswer is one line of what -cel writes.
type celAnswer struct {
	CompileError string  `json:"compileError,omitempty"`
	Type         string  `json:"type,omitempty"`
	Matches      *bool   `json:"matches,omitempty"`
	RuntimeError string  `json:"runtimeError,omitempty"`
	Cost         *uint64 `json:"cost,omitempty"`
}

// answerCEL compiles and evaluates one selector after the other, as the scheduler does.
func answerCEL(in io.Reader, out io.Writer) error {
	compilers := map[bool]interface {
		CompileCELExpression(string, dracel.Options) dracel.CompilationResult
	}{}
	for _, lists := range []bool{false, true} {
		compilers[lists] = dracel.GetCompiler(dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: lists})
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<20), math.MaxInt32)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for lines.Scan() {
		var question celQuestion
		if err := json.Unmarshal(lines.Bytes(), &question); err != nil {
			return err
		}
		compile := compilers[question.ListAttributes].CompileCELExpression
		if err := encoder.Encode(askCEL(question, compile)); err != nil {
			return err
		}
	}
	return lines.Err()
}

func askCEL(question celQuestion, compile func(string, dracel.Options) dracel.CompilationResult) (answer celAnswer) {
	defer func() {
		if panicked := recover(); panicked != nil {
			answer = celAnswer{CompileError: fmt.Sprintf("panic: %v", panicked)}
		}
	}()
	result := compile(question.Expression, dracel.Options{DisableCostEstimation: true})
	if result.Error != nil {
		return celAnswer{CompileError: result.Error.Detail}
	}
	answer.Type = result.OutputType.String()
	matches, details, err := result.DeviceMatches(context.Background(), dracel.Device{
		Driver:                   question.Device.Driver,
		AllowMultipleAllocations: ptr.To(question.Device.AllowMultipleAllocations),
		Attributes:               question.Device.Attributes,
		Capacity:                 question.Device.Capacity,
	})
	if details != nil {
		answer.Cost = details.ActualCost()
	}
	if err != nil {
		answer.RuntimeError = err.Error()
		return answer
	}
	answer.Matches = &matches
	return answer
}
