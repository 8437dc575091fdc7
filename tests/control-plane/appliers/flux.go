package main

import (
	"context"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const fluxGroup = "kustomize.toolkit.fluxcd.io"

// fluxOptions are those of kustomize-controller 1.9 that change objects: fields that kubectl has
// set are taken over, and so removed unless the manifests have them too.
func fluxOptions(owner ssa.Owner) ssa.ApplyOptions {
	options := ssa.DefaultApplyOptions()
	options.Cleanup = ssa.ApplyCleanupOptions{
		Annotations: []string{corev1.LastAppliedConfigAnnotation},
		FieldManagers: []ssa.FieldManager{
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: owner.Field, OperationType: metav1.ManagedFieldsOperationUpdate},
		},
	}
	return options
}

// flux applies the objects, and then looks for drift as in the next interval.
func flux(ctx context.Context, cluster cluster, objects []*unstructured.Unstructured) (bool, error) {
	owner := ssa.Owner{Field: "kustomize-controller", Group: fluxGroup}
	// Namespaces and definitions come first, and the rest once these are ready.
	poller := polling.NewStatusPoller(cluster.kube, cluster.kube.RESTMapper(), polling.Options{})
	manager := ssa.NewResourceManager(cluster.kube, poller, owner)
	manager.SetOwnerLabels(objects, cluster.namespace, cluster.namespace)
	if _, err := manager.ApplyAllStaged(ctx, objects, fluxOptions(owner)); err != nil {
		return false, err
	}
	for _, object := range objects {
		change, _, _, err := manager.Diff(ctx, object, ssa.DefaultDiffOptions())
		if err != nil {
			return false, err
		}
		if change.Action != ssa.UnchangedAction {
			return true, nil
		}
	}
	return false, nil
}
