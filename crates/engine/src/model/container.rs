//! The fields that are read from a pod's containers.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::{HashMap, HashSet};
use serde::Deserialize;
use serde::de::Deserializer;

use super::Text;
use super::amount::Amount;
use super::de::{Named, for_each, nullable};
use super::node::ExtendedResources;
use super::pod::{HostPort, PodVolume};
use super::quantity::Quantity;

/// The fields that are read from a container.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    ports: Ports,
    #[serde(deserialize_with = "nullable")]
    resources: Resources,
    /// `Always` for an init container that keeps running beside the others.
    restart_policy: Option<Text>,
    #[serde(deserialize_with = "nullable")]
    volume_mounts: Vec<Named>,
    #[serde(deserialize_with = "nullable")]
    volume_devices: Vec<Named>,
    #[serde(deserialize_with = "nullable")]
    security_context: Security,
}

/// The ports of containers.
#[derive(Default)]
struct Ports {
    /// The ports that containers listen on; they are ports of the node if the pod uses its network.
    any: BTreeSet<HostPort>,
    /// The ports of the node.
    of_node: BTreeSet<HostPort>,
}

impl<'de> Deserialize<'de> for Ports {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut ports = Self::default();
        for_each(deserializer, "a list", |port: Port| {
            let nonzero = |amount| match amount {
                Some(Amount::Count(number)) if number != 0 => Some(number),
                _ => None,
            };
            let taken = |number| HostPort {
                number,
                protocol: port.protocol.clone(),
                ip: port.host_ip.clone(),
            };
            let host = nonzero(port.host_port);
            ports.of_node.extend(host.map(taken));
            let any = host.or(nonzero(port.container_port));
            ports.any.insert(taken(any.unwrap_or_default()));
        })?;
        Ok(ports)
    }
}

impl Ports {
    fn add(&mut self, other: &Self) {
        self.any.extend(other.any.iter().cloned());
        self.of_node.extend(other.of_node.iter().cloned());
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Port {
    host_port: Option<Amount>,
    container_port: Option<Amount>,
    #[serde(deserialize_with = "nullable")]
    protocol: Text,
    #[serde(rename = "hostIP", deserialize_with = "nullable")]
    host_ip: Text,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resources {
    #[serde(deserialize_with = "nullable")]
    limits: ExtendedResources,
    #[serde(deserialize_with = "nullable")]
    requests: ExtendedResources,
}

/// The fields that are read from the security context of a pod or a container.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Security {
    se_linux_options: Option<SeLinuxOptions>,
    /// In a pod, `Recursive` if volumes are relabelled file by file instead of mounted with a
    /// label.
    #[serde(deserialize_with = "nullable")]
    se_linux_change_policy: Text,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SeLinuxOptions {
    #[serde(deserialize_with = "nullable")]
    user: Text,
    #[serde(deserialize_with = "nullable")]
    level: Text,
}

impl SeLinuxOptions {
    /// The part that labels of files take from it: roles and types are those of processes
    /// (`InitLabels` in `github.com/opencontainers/selinux`). `None` without a level, because the
    /// container runtime then chooses one.
    fn label(&self) -> Option<Text> {
        let Self { user, level } = self;
        (!level.is_empty()).then(|| format!("{user}:{level}").into())
    }
}

/// The SELinux label that a container gives to the volumes it uses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Label {
    /// The label of the pod.
    OfPod,
    /// The container's own label, if it is known.
    Own(Option<Text>),
}

/// The settings of a list of containers. Equal ones are kept once.
#[derive(Default)]
pub(super) struct ContainerList {
    is_filled: bool,
    ports: Ports,
    /// The ports of the init containers that keep running beside the others.
    ports_of_sidecars: Ports,
    /// The amount of each resource that all containers request together.
    extended_resources: BTreeMap<Text, Quantity>,
    /// The largest amount of each resource that one container requests.
    most_of_one: BTreeMap<Text, Quantity>,
    uses: HashSet<(Text, Label)>,
}

impl<'de> Deserialize<'de> for ContainerList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut list = Self::default();
        let add = |container: Container| list.add(container);
        for_each(deserializer, "a list", add)?;
        Ok(list)
    }
}

impl ContainerList {
    fn add(&mut self, container: Container) {
        self.is_filled = true;
        self.ports.add(&container.ports);
        if container.restart_policy.as_deref() == Some("Always") {
            self.ports_of_sidecars.add(&container.ports);
        }
        let Resources { limits, requests } = container.resources;
        // The API server demands that both are equal, or fills the request in.
        let mut asked = limits.0;
        asked.extend(requests.0);
        for (name, amount) in asked {
            let most = self.most_of_one.entry(name.clone()).or_default();
            *most = amount.max(*most);
            let Quantity(sum) = self.extended_resources.entry(name).or_default();
            *sum = sum.saturating_add(amount.0);
        }
        let label = match &container.security_context.se_linux_options {
            Some(options) => Label::Own(options.label()),
            None => Label::OfPod,
        };
        self.uses
            .extend(container.volume_mounts.into_iter().map(|mount| (mount.name, label.clone())));
        // Devices are not mounted, so they get no label.
        self.uses.extend(
            container.volume_devices.into_iter().map(|device| (device.name, Label::Own(None))),
        );
    }
}

/// The ports of their node that the containers of a pod use.
pub(super) fn host_ports(
    main: &ContainerList,
    init: &ContainerList,
    host_network: bool,
) -> Box<[HostPort]> {
    let mut ports = Ports::default();
    ports.add(&main.ports);
    ports.add(&init.ports_of_sidecars);
    // If the pod uses the node's own network, every port of a container is one of the node.
    let taken = if host_network { ports.any } else { ports.of_node };
    taken.into_iter().collect()
}

/// The resources that the pod requests: the sum over its containers, or the largest request of an
/// init container that runs before them.
pub(super) fn extended_resources(
    main: &ContainerList,
    init: &ContainerList,
) -> Box<[(Text, Quantity)]> {
    let mut asked = main.extended_resources.clone();
    for (name, most) in &init.most_of_one {
        let sum = asked.entry(name.clone()).or_default();
        *sum = (*most).max(*sum);
    }
    asked.into_iter().collect()
}

/// Records for each volume whether containers use it, and under which SELinux label. The first of
/// the lists has the main containers; if it is empty, the template is a fragment and nothing is
/// known.
pub(super) fn mark(volumes: &mut [PodVolume], lists: [&ContainerList; 3], pod: &Security) {
    let [main, ..] = lists;
    if volumes.is_empty() || !main.is_filled {
        return;
    }
    let by_label = pod.se_linux_change_policy != "Recursive";
    let of_pod = pod.se_linux_options.as_ref().and_then(SeLinuxOptions::label);
    let mut labels: HashMap<&Text, Option<&str>> = HashMap::new();
    for (name, label) in lists.into_iter().flat_map(|list| &list.uses) {
        let label = match label {
            _ if !by_label => Some(""),
            Label::OfPod => of_pod.as_deref(),
            Label::Own(own) => own.as_deref(),
        };
        labels
            .entry(name)
            .and_modify(|other| *other = label.filter(|_| *other == label))
            .or_insert(label);
    }
    for volume in volumes {
        let label = labels.get(&volume.name);
        volume.mounted = label.is_some();
        volume.selinux_label = label.copied().flatten().map(Into::into);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::workload::{Workload, WorkloadKind};
    use super::*;

    fn volumes(spec: &serde_json::Value) -> Box<[PodVolume]> {
        let text = json!({ "spec": spec }).to_string();
        let mut json = serde_json::Deserializer::from_str(&text);
        let pod = Workload::read(WorkloadKind::Pod, &mut json).unwrap();
        pod.template.volumes
    }

    fn mounted(spec: &serde_json::Value) -> Vec<bool> {
        volumes(spec).iter().map(|volume| volume.mounted).collect()
    }

    #[test]
    fn every_kind_of_container_mounts_or_maps() {
        let claim = |at: usize| json!({"name": format!("v{at}"), "persistentVolumeClaim": {"claimName": "c"}});
        let all: Vec<_> = (0..500).map(claim).collect();
        let one = json!({"volumes": all, "containers": [{"volumeMounts": [{"name": "v7"}]}]});
        let count = mounted(&one).iter().filter(|is_mounted| **is_mounted).count();
        assert_eq!((count, mounted(&one)[7]), (1, true));
        let uses = [
            json!({"containers": [{}], "initContainers": [{"volumeMounts": [{"name": "v0"}]}]}),
            json!({"containers": [{}], "ephemeralContainers": [{"volumeMounts": [{"name": "v0"}]}]}),
            json!({"containers": [{}, {"volumeDevices": [{"name": "v0"}]}]}),
            // A fragment: nothing is known about its containers.
            json!({}),
            json!({"containers": []}),
        ];
        for mut spec in uses {
            spec["volumes"] = json!([claim(0)]);
            assert_eq!(mounted(&spec), [true], "{spec}");
        }
        let unused = json!({"volumes": [claim(0)], "containers": [{"volumeMounts": null}]});
        assert_eq!(mounted(&unused), [false]);
    }

    #[test]
    fn a_volume_has_the_one_label_of_all_its_containers() {
        let label = |pod: serde_json::Value, containers: serde_json::Value| {
            let spec = json!({"securityContext": pod, "containers": containers,
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]});
            volumes(&spec)[0].selinux_label.clone()
        };
        let of = |level: &str| json!({"seLinuxOptions": {"level": level}});
        let mounts = json!([{"name": "v"}]);
        let plain = json!({"volumeMounts": mounts});
        let own = json!({"volumeMounts": mounts, "securityContext": of("s0:c2")});
        let known = |text: &str| Some(Text::from(text));
        assert_eq!(label(of("s0:c1"), json!([plain])), known(":s0:c1"));
        assert_eq!(label(of("s0:c1"), json!([own])), known(":s0:c2"));
        assert_eq!(label(of("s0:c1"), json!([own, plain])), None);
        assert_eq!(label(json!({}), json!([plain])), None);
        let recursive =
            json!({"seLinuxChangePolicy": "Recursive", "seLinuxOptions": {"level": "s0:c1"}});
        assert_eq!(label(recursive, json!([own, plain])), known(""));
        let privileged = json!({"volumeMounts": mounts, "securityContext": {"privileged": true}});
        assert_eq!(label(of("s0:c1"), json!([privileged])), known(":s0:c1"));
        let device = json!({"volumeDevices": mounts});
        assert_eq!(label(of("s0:c1"), json!([device])), None);
        assert_eq!(label(json!({"seLinuxOptions": {"type": "t"}}), json!([plain])), None);
    }
}
