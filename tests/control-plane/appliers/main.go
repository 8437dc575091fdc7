// Command appliers applies the manifests on its standard input like Flux's kustomize-controller or
// Argo CD, with their own code.
//
//	appliers flux NAMESPACE
//	appliers argo-cd [--server-side] [--spec FILE] NAMESPACE
//
// FILE has `ignoreDifferences` and `syncPolicy.syncOptions` of an Application's spec, as JSON. They
// may be left out, as may the file.
//
// It prints `in sync` or `out of sync`, the tool's status of the objects after applying them, and
// ends with 1 and the reason if an object is refused.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/pkg/ssa/utils"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// cluster is where objects are applied.
type cluster struct {
	config *rest.Config
	kube   client.Client
	// namespace is for objects that name none.
	namespace string
}

// applier applies objects and says whether they then differ from the manifests.
type applier func(ctx context.Context, cluster cluster, objects []*unstructured.Unstructured) (bool, error)

func main() {
	// Their logs are not messages to a user.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, in io.Reader, out io.Writer) error {
	apply, namespace, err := parse(arguments)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return fmt.Errorf("KUBECONFIG: %w", err)
	}
	config.WarningHandler = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{})
	kube, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("the API server: %w", err)
	}
	objects, err := utils.ReadObjects(in)
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	for _, object := range objects {
		namespaced, err := kube.IsObjectNamespaced(object)
		if err != nil {
			return fmt.Errorf("%s: %w", object.GetKind(), err)
		}
		if namespaced && object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
	}
	differs, err := apply(ctx, cluster{config, kube, namespace}, objects)
	if err != nil {
		return err
	}
	state := "in sync"
	if differs {
		state = "out of sync"
	}
	_, err = fmt.Fprintln(out, state)
	return err
}

func parse(arguments []string) (applier, string, error) {
	usage := fmt.Errorf("usage: appliers flux NAMESPACE | appliers argo-cd [--server-side] [--spec FILE] NAMESPACE")
	if len(arguments) == 0 {
		return nil, "", usage
	}
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	var serverSide bool
	var file string
	if arguments[0] == "argo-cd" {
		flags.BoolVar(&serverSide, "server-side", false, "the sync option ServerSideApply=true")
		flags.StringVar(&file, "spec", "", "a part of an Application's spec")
	}
	if err := flags.Parse(arguments[1:]); err != nil {
		return nil, "", err
	}
	if flags.NArg() != 1 {
		return nil, "", usage
	}
	namespace := flags.Arg(0)
	switch arguments[0] {
	case "flux":
		return flux, namespace, nil
	case "argo-cd":
		var spec applicationSpec
		if file != "" {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, "", err
			}
			if err := json.Unmarshal(text, &spec); err != nil {
				return nil, "", fmt.Errorf("%s: %w", file, err)
			}
		}
		return argoCD(serverSide, spec), namespace, nil
	}
	return nil, "", usage
}
