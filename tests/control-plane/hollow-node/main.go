// Command hollow-node is one node of a cluster without containers or disks: the kubelet of the
// minor with which it is compiled, assembled as in kubemark, and CSI drivers that register with it.
//
// With -controller it is the other half of such a driver instead, for the external-attacher and the
// external-provisioner.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	apitest "k8s.io/cri-api/pkg/apis/testing"
	"k8s.io/klog/v2"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubemark"
)

// A node is the JSON description of a node on the command line.
type node struct {
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
	Taints    []corev1.Taint    `json:"taints"`
	Resources map[string]string `json:"resources"`
	Drivers   []driverSpec      `json:"drivers"`
	Gates     map[string]bool   `json:"gates"`
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	root := flag.String("root", "", "the node's own folder")
	disks := flag.String("disks", "", "the folder that stands for the disks of all nodes")
	controller := flag.String("controller", "", "serve the controller of the driver of this name, and no node")
	spec := flag.String("node", "{}", "the node")
	klog.InitFlags(nil)
	flag.Parse()
	if *controller != "" {
		log.Fatal(serveController(*controller, filepath.Join(*root, "csi.sock"), *disks))
	}
	var n node
	if err := json.Unmarshal([]byte(*spec), &n); err != nil {
		log.Fatalf("-node: %v", err)
	}
	if err := run(n, *kubeconfig, *root, *disks); err != nil {
		log.Fatalf("node %s: %v", n.Name, err)
	}
}

func run(n node, kubeconfig, root, disks string) error {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(n.Gates); err != nil {
		return err
	}
	// A kubelet looks up its node's name every second, and the node cannot register while a DNS server
	// is slow to say that it does not know the name.
	net.DefaultResolver = &net.Resolver{
		PreferGo: true,
		Dial:     func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no DNS") },
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 50, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	flags, configuration := kubemark.GetHollowKubeletConfig(&kubemark.HollowKubeletOptions{
		NodeName:           n.Name,
		MaxPods:            110,
		NodeLabels:         n.Labels,
		RegisterWithTaints: n.Taints,
	})
	// kubemark's own folder is in /tmp and would stay there.
	if err := os.RemoveAll(flags.RootDirectory); err != nil {
		return err
	}
	flags.RootDirectory = root
	configuration.PodLogsDir = filepath.Join(root, "pod-logs")
	// No pods are put there, and watching it takes one of a user's few inotify instances.
	configuration.StaticPodPath = ""
	// Settings that kubemark leaves out, and settings that would make a test wait.
	configuration.EnableControllerAttachDetach = true
	configuration.EnableServer = false
	configuration.NodeLeaseDurationSeconds = 12
	configuration.NodeStatusUpdateFrequency.Duration = time.Second
	configuration.SyncFrequency.Duration = 2 * time.Second
	for _, spec := range n.Drivers {
		if err := serveNode(spec, n.Name, flags.RootDirectory, disks); err != nil {
			return fmt.Errorf("driver %s: %w", spec.Name, err)
		}
	}
	resources := corev1.ResourceList{}
	for name, amount := range n.Resources {
		quantity, err := resource.ParseQuantity(amount)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", amount, name, err)
		}
		resources[corev1.ResourceName(name)] = quantity
	}
	kubelet := kubemark.NewHollowKubelet(
		flags, configuration, client, client,
		&cadvisortest.Fake{NodeName: n.Name},
		apitest.NewFakeImageService(),
		newContainers(),
		cm.NewStubContainerManagerWithDevicePluginResource(resources),
	)
	// kubemark's prober reports every container as ready, started or not, and its recorder drops the
	// kubelet's Events.
	kubelet.KubeletDeps.ProbeManager = nil
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	kubelet.KubeletDeps.Recorder = broadcaster.NewRecorder(
		scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: n.Name})
	// 1.30 takes no context.
	switch start := any(kubelet.Run).(type) {
	case func():
		start()
	case func(context.Context):
		start(context.Background())
	}
	return fmt.Errorf("the kubelet of this minor cannot be started: Run is %T", kubelet.Run)
}
