package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/tracing"
	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// argoManager is the field manager of Argo CD's application controller.
const argoManager = "argocd-controller"

// argo holds the inputs of one sync.
type argo struct {
	cluster
	serverSide bool
	spec       applicationSpec
	kubectl    *kube.KubectlCmd
	parser     *managedfields.GvkParser
}

func argoCD(serverSide bool, spec applicationSpec) applier {
	return func(ctx context.Context, cluster cluster, objects []*unstructured.Unstructured) (bool, error) {
		kubectl := &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}}
		_, parser, err := kubectl.LoadOpenAPISchema(cluster.config)
		if err != nil {
			return false, fmt.Errorf("the API server's schemas: %w", err)
		}
		for _, object := range objects {
			annotations := object.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations["argocd.argoproj.io/tracking-id"] = fmt.Sprintf("%s:%s/%s", cluster.namespace, object.GetKind(), object.GetName())
			object.SetAnnotations(annotations)
		}
		argo := argo{cluster, serverSide, spec, kubectl, parser}
		if err := argo.sync(ctx, objects); err != nil {
			return false, err
		}
		return argo.differs(ctx, objects)
	}
}

// sync does the same as a click on Sync.
func (a argo) sync(ctx context.Context, objects []*unstructured.Unstructured) error {
	live, err := a.live(ctx, objects)
	if err != nil {
		return err
	}
	targets := objects
	if a.spec.has("RespectIgnoreDifferences=true") {
		if targets, err = a.spec.keepIgnored(objects, live); err != nil {
			return err
		}
	}
	state := sync.ReconciliationResult{Target: targets, Live: live}
	run, cleanup, err := sync.NewSyncContext("revision", state, a.config, a.config, a.kubectl, a.namespace,
		sync.WithLogr(logr.Discard()),
		sync.WithReplace(a.spec.has("Replace=true")),
		sync.WithServerSideApply(a.serverSide),
		sync.WithServerSideApplyManager(argoManager))
	if err != nil {
		return fmt.Errorf("the sync: %w", err)
	}
	defer cleanup()
	for {
		run.Sync()
		phase, message, results := run.GetState()
		if !phase.Completed() {
			continue
		}
		if phase.Successful() {
			return nil
		}
		failed := errors.New(message)
		for _, result := range results {
			if result.Status == common.ResultCodeSyncFailed {
				failed = errors.Join(failed, errors.New(result.Message))
			}
		}
		return failed
	}
}

// differs compares like the application's status, with the defaults of Argo CD and the application's
// ignoreDifferences.
func (a argo) differs(ctx context.Context, objects []*unstructured.Unstructured) (bool, error) {
	live, err := a.live(ctx, objects)
	if err != nil {
		return false, err
	}
	differences, err := diff.DiffArray(objects, live,
		diff.WithLogr(logr.Discard()),
		diff.WithNormalizer(a.spec),
		diff.WithStructuredMergeDiff(a.serverSide),
		diff.WithGVKParser(a.parser),
		diff.WithManager(argoManager))
	if err != nil {
		return false, err
	}
	return differences.Modified, nil
}

// live reads the objects from the cluster; nil for an object that does not exist.
func (a argo) live(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	live := make([]*unstructured.Unstructured, len(objects))
	for i, object := range objects {
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(object.GroupVersionKind())
		err := a.kube.Get(ctx, client.ObjectKeyFromObject(object), found)
		switch {
		case err == nil:
			live[i] = found
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return live, nil
}
