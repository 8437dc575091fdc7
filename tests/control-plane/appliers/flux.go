package main

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/ssa"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
func flux(ctx context.Context, config *rest.Config, namespace string, objects []*unstructured.Unstructured) (bool, error) {
	kube, err := client.New(config, client.Options{})
	if err != nil {
		return false, fmt.Errorf("the API server: %w", err)
	}
	owner := ssa.Owner{Field: "kustomize-controller", Group: fluxGroup}
	manager := ssa.NewResourceManager(kube, nil, owner)
	manager.SetOwnerLabels(objects, namespace, namespace)
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
