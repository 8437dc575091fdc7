// Command hollow-node is one node of a cluster without containers or disks: the kubelet of the
// minor with which it is compiled, on a fake host, and CSI drivers that register with it.
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
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
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
	for _, spec := range n.Drivers {
		if err := serveNode(spec, n.Name, root, disks); err != nil {
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
	return runKubelet(n, root, resources, client)
}
