package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// A driverSpec is a CSI driver of a node.
type driverSpec struct {
	Name string `json:"name"`
	// Limit is the number of volumes that fit on the node; 0 is no limit.
	Limit int64 `json:"limit"`
	// Topology holds the node's labels that decide which volumes it can have.
	Topology map[string]string `json:"topology"`
}

// The attributes of a volume (spec.csi.volumeAttributes) that change the driver's behaviour.
const (
	// "refuse" a second mount on one node, as drivers of LVM and ZFS do.
	secondMount = "second-mount"
	// "refuse" a second node while the volume is mounted, as drivers that do not attach do.
	secondNode = "second-node"
	// "fail" to detach.
	detach = "detach"
	// "nonsense" instead of an answer.
	answer = "answer"
)

// disks is a folder that the drivers of all nodes share: disks/VOLUME/NODE/MOUNT exists for each
// mount of a volume, disks/VOLUME/attached/NODE for each node to which it is attached, and
// disks/VOLUME/stuck if it cannot be detached.
type disks string

// locked runs a function while no other driver works.
func (d disks) locked(do func() error) error {
	lock, err := os.OpenFile(filepath.Join(string(d), ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	return do()
}

func escape(name string) string { return strings.ReplaceAll(name, "/", "^") }

func (d disks) folder(volume, node string) string {
	return filepath.Join(string(d), escape(volume), node)
}

// holders are the nodes with an entry below a folder of a volume.
func holders(folder string) []string {
	entries, _ := os.ReadDir(folder)
	var nodes []string
	for _, entry := range entries {
		if inside, _ := os.ReadDir(filepath.Join(folder, entry.Name())); len(inside) > 0 && entry.Name() != attached {
			nodes = append(nodes, entry.Name())
		}
	}
	return nodes
}

const (
	attached = "attached"
	stuck    = "stuck"
)

// nodeServer is a driver on one node.
type nodeServer struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer
	spec   driverSpec
	node   string
	socket string
	disks  disks
}

// serveNode starts the driver and registers it with the kubelet that has this root folder.
func serveNode(spec driverSpec, node, root, shared string) error {
	server := &nodeServer{
		spec:   spec,
		node:   node,
		socket: filepath.Join(root, "plugins", spec.Name, "csi.sock"),
		disks:  disks(shared),
	}
	err := serve(server.socket, func(s *grpc.Server) {
		csi.RegisterIdentityServer(s, server)
		csi.RegisterNodeServer(s, server)
	})
	return errors.Join(err, serve(filepath.Join(root, "plugins_registry", spec.Name+"-reg.sock"), func(s *grpc.Server) {
		registration.RegisterRegistrationServer(s, server)
	}))
}

func serve(socket string, register func(*grpc.Server)) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	register(server)
	go func() { _ = server.Serve(listener) }()
	return nil
}

func (s *nodeServer) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type:              registration.CSIPlugin,
		Name:              s.spec.Name,
		Endpoint:          s.socket,
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (s *nodeServer) NotifyRegistrationStatus(_ context.Context, told *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !told.PluginRegistered {
		fmt.Fprintf(os.Stderr, "driver %s was not registered: %s\n", s.spec.Name, told.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func (s *nodeServer) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	info := &csi.NodeGetInfoResponse{NodeId: s.node, MaxVolumesPerNode: s.spec.Limit}
	if len(s.spec.Topology) > 0 {
		info.AccessibleTopology = &csi.Topology{Segments: s.spec.Topology}
	}
	return info, nil
}

func (s *nodeServer) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (s *nodeServer) NodePublishVolume(_ context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	behaviour := request.GetVolumeContext()
	if behaviour[answer] == "nonsense" {
		return nil, status.Error(codes.Code(4096), "\x00\xff nobody knows this code")
	}
	own := s.disks.folder(request.GetVolumeId(), s.node)
	mount := filepath.Join(own, escape(request.GetTargetPath()))
	err := s.disks.locked(func() error {
		if _, err := os.Stat(mount); err == nil {
			return nil
		}
		if there, _ := os.ReadDir(own); behaviour[secondMount] == "refuse" && len(there) > 0 {
			return status.Errorf(codes.Internal, "device already mounted at %s", there[0].Name())
		}
		for _, other := range holders(filepath.Dir(own)) {
			if behaviour[secondNode] == "refuse" && other != s.node {
				return status.Errorf(codes.Internal, "the volume is in use on node %s", other)
			}
		}
		return errors.Join(os.MkdirAll(mount, 0o755), os.MkdirAll(request.GetTargetPath(), 0o755))
	})
	if err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (s *nodeServer) NodeUnpublishVolume(_ context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	mount := filepath.Join(s.disks.folder(request.GetVolumeId(), s.node), escape(request.GetTargetPath()))
	err := s.disks.locked(func() error {
		return errors.Join(os.RemoveAll(mount), os.RemoveAll(request.GetTargetPath()))
	})
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// controllerServer is the half of a driver that attaches and provisions volumes.
type controllerServer struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	name  string
	disks disks
}

// serveController serves for ever, unless the start fails.
func serveController(name, socket, shared string) error {
	server := &controllerServer{name: name, disks: disks(shared)}
	if err := serve(socket, func(s *grpc.Server) {
		csi.RegisterIdentityServer(s, server)
		csi.RegisterControllerServer(s, server)
	}); err != nil {
		return err
	}
	select {}
}

func (s *controllerServer) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: s.name, VendorVersion: "1"}, nil
}

func (s *controllerServer) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (s *controllerServer) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{
		Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{
			Type: csi.PluginCapability_Service_CONTROLLER_SERVICE,
		}},
	}}}, nil
}

func (s *controllerServer) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	capabilities := &csi.ControllerGetCapabilitiesResponse{}
	for _, kind := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
	} {
		capabilities.Capabilities = append(capabilities.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: kind}},
		})
	}
	return capabilities, nil
}

func (s *controllerServer) CreateVolume(_ context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId:      request.GetName(),
		CapacityBytes: request.GetCapacityRange().GetRequiredBytes(),
		VolumeContext: request.GetParameters(),
	}}, nil
}

func (s *controllerServer) DeleteVolume(context.Context, *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	return &csi.DeleteVolumeResponse{}, nil
}

func (s *controllerServer) ControllerPublishVolume(_ context.Context, request *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	behaviour := request.GetVolumeContext()
	if behaviour[answer] == "nonsense" {
		return nil, status.Error(codes.Code(4096), "\x00\xff nobody knows this code")
	}
	volume := s.disks.folder(request.GetVolumeId(), attached)
	err := s.disks.locked(func() error {
		if err := os.MkdirAll(volume, 0o755); err != nil {
			return err
		}
		there, _ := os.ReadDir(volume)
		for _, other := range there {
			// A disk is attached to one node, whatever the modes of its PersistentVolume.
			if other.Name() != request.GetNodeId() && behaviour[secondNode] != "allow" {
				return status.Errorf(codes.FailedPrecondition, "the disk is attached to %s", other.Name())
			}
		}
		if behaviour[detach] == "fail" {
			if err := os.WriteFile(s.disks.folder(request.GetVolumeId(), stuck), nil, 0o600); err != nil {
				return err
			}
		}
		return os.WriteFile(filepath.Join(volume, request.GetNodeId()), nil, 0o600)
	})
	if err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{}, nil
}

func (s *controllerServer) ControllerUnpublishVolume(_ context.Context, request *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	err := s.disks.locked(func() error {
		if _, err := os.Stat(s.disks.folder(request.GetVolumeId(), stuck)); err == nil {
			return status.Error(codes.Internal, "the disk cannot be detached")
		}
		return os.RemoveAll(filepath.Join(s.disks.folder(request.GetVolumeId(), attached), request.GetNodeId()))
	})
	if err != nil {
		return nil, err
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}
