package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/itchyny/gojq"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// applicationSpec is what an Application's spec says about comparing and syncing. Argo CD acts on
// ignoreDifferences in its controller, not in the engine, so this does the same for paths of jq.
type applicationSpec struct {
	IgnoreDifferences []struct {
		Group             string   `json:"group"`
		Kind              string   `json:"kind"`
		JQPathExpressions []string `json:"jqPathExpressions"`
	} `json:"ignoreDifferences"`
	SyncPolicy struct {
		SyncOptions []string `json:"syncOptions"`
	} `json:"syncPolicy"`
}

func (spec applicationSpec) has(option string) bool {
	return slices.Contains(spec.SyncPolicy.SyncOptions, option)
}

// Normalize removes the ignored fields.
func (spec applicationSpec) Normalize(object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	for _, ignored := range spec.IgnoreDifferences {
		if ignored.Group != kind.Group || ignored.Kind != kind.Kind {
			continue
		}
		for _, path := range ignored.JQPathExpressions {
			query, err := gojq.Parse(fmt.Sprintf("del(%s)", path))
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			// jq knows fewer types of numbers than Kubernetes.
			text, err := object.MarshalJSON()
			if err != nil {
				return err
			}
			var value map[string]any
			if err := json.Unmarshal(text, &value); err != nil {
				return err
			}
			result, _ := query.Run(value).Next()
			if err, failed := result.(error); failed {
				return fmt.Errorf("%s: %w", path, err)
			}
			if text, err = json.Marshal(result); err != nil {
				return err
			}
			if err := object.UnmarshalJSON(text); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepIgnored returns the objects with the ignored fields of the live ones.
func (spec applicationSpec) keepIgnored(objects, live []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	targets := slices.Clone(objects)
	for i, there := range live {
		if there == nil {
			continue
		}
		without := there.DeepCopy()
		if err := spec.Normalize(without); err != nil {
			return nil, err
		}
		if equality.Semantic.DeepEqual(without, there) {
			continue
		}
		kind, err := scheme.Scheme.New(there.GroupVersionKind())
		if err != nil {
			return nil, err
		}
		var texts [3][]byte
		for j, object := range []*unstructured.Unstructured{without, there, objects[i]} {
			if texts[j], err = object.MarshalJSON(); err != nil {
				return nil, err
			}
		}
		ignored, err := strategicpatch.CreateTwoWayMergePatch(texts[0], texts[1], kind)
		if err != nil {
			return nil, err
		}
		merged, err := strategicpatch.StrategicMergePatch(texts[2], ignored, kind)
		if err != nil {
			return nil, err
		}
		targets[i] = &unstructured.Unstructured{}
		if err := targets[i].UnmarshalJSON(merged); err != nil {
			return nil, err
		}
	}
	return targets, nil
}
