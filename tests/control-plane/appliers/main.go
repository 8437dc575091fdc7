// Command appliers applies the manifests on its standard input like Flux's kustomize-controller or
// Argo CD, with their own code.
//
//	appliers flux NAMESPACE
//	appliers argo-cd [--server-side] NAMESPACE
//
// It prints `in sync` or `out of sync`, the tool's status of the objects after applying them, and
// ends with 1 and the reason if an object is refused.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/fluxcd/pkg/ssa/utils"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// applier applies objects in a namespace and says whether they then differ from the manifests.
type applier func(ctx context.Context, config *rest.Config, namespace string, objects []*unstructured.Unstructured) (bool, error)

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
	objects, err := utils.ReadObjects(in)
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	for _, object := range objects {
		object.SetNamespace(namespace)
	}
	differs, err := apply(ctx, config, namespace, objects)
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
	serverSide := slices.Contains(arguments, "--server-side")
	arguments = slices.DeleteFunc(arguments, func(it string) bool { return it == "--server-side" })
	if len(arguments) == 2 {
		switch {
		case arguments[0] == "flux" && !serverSide:
			return flux, arguments[1], nil
		case arguments[0] == "argo-cd":
			return argoCD(serverSide), arguments[1], nil
		}
	}
	return nil, "", fmt.Errorf("usage: appliers flux NAMESPACE | appliers argo-cd [--server-side] NAMESPACE")
}
