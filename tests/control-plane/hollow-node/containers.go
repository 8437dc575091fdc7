package main

import (
	"context"
	"strconv"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	apitest "k8s.io/cri-api/pkg/apis/testing"
)

// endsAfter is the annotation of a pod whose containers end by themselves: the number of seconds
// for which they run.
const endsAfter = "fake-kubelet/ends-after-seconds"

// containers is a runtime whose containers ignore SIGTERM, so they use their whole grace period.
// They end by themselves only if their pod has the annotation. The command `true` ends at once.
type containers struct {
	*apitest.FakeRuntimeService
	// The time for which each container that ends by itself runs, by its identifier.
	spans sync.Map
}

func newContainers() *containers {
	runtime := apitest.NewFakeRuntimeService()
	runtime.FakeStatus = &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true},
		{Type: runtimeapi.NetworkReady, Status: true},
	}}
	return &containers{FakeRuntimeService: runtime}
}

func (c *containers) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, sandboxConfig *runtimeapi.PodSandboxConfig) (string, error) {
	id, err := c.FakeRuntimeService.CreateContainer(ctx, sandbox, config, sandboxConfig)
	if err != nil {
		return id, err
	}
	span := sandboxConfig.GetAnnotations()[endsAfter]
	if len(config.GetCommand()) == 1 && config.GetCommand()[0] == "true" {
		span = "0"
	}
	if seconds, err := strconv.Atoi(span); err == nil {
		c.spans.Store(id, time.Duration(seconds)*time.Second)
	}
	return id, nil
}

func (c *containers) StartContainer(ctx context.Context, id string) error {
	if err := c.FakeRuntimeService.StartContainer(ctx, id); err != nil {
		return err
	}
	if span, ends := c.spans.LoadAndDelete(id); ends {
		time.AfterFunc(span.(time.Duration), func() {
			// It may have been removed in the meantime.
			_ = c.FakeRuntimeService.StopContainer(context.Background(), id, 0)
		})
	}
	return nil
}

func (c *containers) StopContainer(ctx context.Context, id string, grace int64) error {
	status, err := c.FakeRuntimeService.ContainerStatus(ctx, id, false)
	if err == nil && status.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING {
		select {
		case <-time.After(time.Duration(grace) * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return c.FakeRuntimeService.StopContainer(ctx, id, grace)
}
