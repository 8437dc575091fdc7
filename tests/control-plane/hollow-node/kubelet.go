package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	apitest "k8s.io/cri-api/pkg/apis/testing"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	containertest "k8s.io/kubernetes/pkg/kubelet/container/testing"
	"k8s.io/kubernetes/pkg/kubelet/util"
	"k8s.io/kubernetes/pkg/util/oom"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/csi"
	"k8s.io/kubernetes/pkg/volume/downwardapi"
	"k8s.io/kubernetes/pkg/volume/emptydir"
	"k8s.io/kubernetes/pkg/volume/fc"
	"k8s.io/kubernetes/pkg/volume/hostpath"
	"k8s.io/kubernetes/pkg/volume/iscsi"
	"k8s.io/kubernetes/pkg/volume/local"
	"k8s.io/kubernetes/pkg/volume/nfs"
	"k8s.io/kubernetes/pkg/volume/projected"
	"k8s.io/kubernetes/pkg/volume/secret"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/kubernetes/pkg/volume/util/subpath"
	"k8s.io/mount-utils"
)

// runKubelet runs the kubelet of a node for ever, unless the start fails. What is not said here is
// the kubelet's own default.
func runKubelet(n node, root string, resources corev1.ResourceList, client kubernetes.Interface) error {
	configuration, err := options.NewKubeletConfiguration()
	if err != nil {
		return err
	}
	server := &options.KubeletServer{KubeletFlags: *options.NewKubeletFlags(), KubeletConfiguration: *configuration}
	server.HostnameOverride = n.Name
	server.RootDirectory = root
	server.NodeLabels = n.Labels
	server.RegisterWithTaints = n.Taints
	server.PodLogsDir = filepath.Join(root, "pod-logs")
	// The host's cgroups, iptables and limits are not the node's.
	server.CgroupsPerQOS = false
	server.MakeIPTablesUtilChains = false
	server.MaxOpenFiles = 1024
	server.EnableServer = false
	server.ReadOnlyPort = 0
	// Settings that would make a test wait.
	server.NodeLeaseDurationSeconds = 12
	server.NodeStatusUpdateFrequency.Duration = time.Second
	server.SyncFrequency.Duration = 2 * time.Second

	tracker, err := startupTracker(util.NewNodeStartupLatencyTracker)
	if err != nil {
		return err
	}
	host := &kubelet.Dependencies{
		KubeClient:                client,
		HeartbeatClient:           client,
		EventClient:               client.CoreV1(),
		RemoteRuntimeService:      newContainers(),
		RemoteImageService:        apitest.NewFakeImageService(),
		CAdvisorInterface:         &cadvisortest.Fake{NodeName: n.Name},
		ContainerManager:          cm.NewStubContainerManagerWithDevicePluginResource(resources),
		OSInterface:               &containertest.FakeOS{},
		OOMAdjuster:               oom.NewFakeOOMAdjuster(),
		Mounter:                   &mount.FakeMounter{},
		Subpather:                 &subpath.FakeSubpath{},
		HostUtil:                  hostutil.NewFakeHostUtil(nil),
		VolumePlugins:             volumePlugins(),
		PodStartupLatencyTracker:  util.NewPodStartupLatencyTracker(),
		NodeStartupLatencyTracker: tracker,
		TracerProvider:            otel.GetTracerProvider(),
	}
	if err := start(app.RunKubelet, server, host); err != nil {
		return err
	}
	select {}
}

func volumePlugins() []volume.VolumePlugin {
	var plugins []volume.VolumePlugin
	for _, probe := range []func() []volume.VolumePlugin{
		configmap.ProbeVolumePlugins, csi.ProbeVolumePlugins, downwardapi.ProbeVolumePlugins,
		emptydir.ProbeVolumePlugins, fc.ProbeVolumePlugins, iscsi.ProbeVolumePlugins,
		local.ProbeVolumePlugins, projected.ProbeVolumePlugins, secret.ProbeVolumePlugins,
	} {
		plugins = append(plugins, probe()...)
	}
	plugins = append(plugins, hostpath.FakeProbeVolumePlugins(volume.VolumeConfig{})...)
	return append(plugins, nfs.ProbeVolumePlugins(volume.VolumeConfig{})...)
}

// The parameters of these two functions differ between the minors, so their types are found out at
// run time.

func startupTracker(create any) (util.NodeStartupLatencyTracker, error) {
	switch create := create.(type) {
	case func() util.NodeStartupLatencyTracker: // up to 1.36
		return create(), nil
	case func(klog.Logger) util.NodeStartupLatencyTracker:
		return create(klog.Background()), nil
	}
	return nil, fmt.Errorf("the kubelet of this minor cannot be assembled: NewNodeStartupLatencyTracker is %T", create)
}

func start(run any, server *options.KubeletServer, host *kubelet.Dependencies) error {
	switch run := run.(type) {
	case func(*options.KubeletServer, *kubelet.Dependencies, bool) error: // 1.30
		return run(server, host, false)
	case func(context.Context, *options.KubeletServer, *kubelet.Dependencies) error:
		return run(context.Background(), server, host)
	}
	return fmt.Errorf("the kubelet of this minor cannot be started: RunKubelet is %T", run)
}
