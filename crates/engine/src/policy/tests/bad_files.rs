use crate::policy::Policy;

#[test]
fn every_bad_file_is_named_with_its_place_and_the_way_out() {
    let cases = [
        (
            "unknown section",
            "default:\n  remedy: auto\n",
            "1:1: the key \"default\" is not known here; did you mean \"defaults\"? \
             Known are defaults, nodes, namespaces, exemptions, provisioners and fencing",
        ),
        (
            "unknown key deeper down",
            "defaults:\n  remedies: auto\n",
            "2:3: the key \"remedies\" is not known here; did you mean \"remedy\"? \
             Known are outcomes, rules, remedy, overrides, \
             controlled, existing, too-complex and certainty",
        ),
        (
            "a key like no other",
            "zzz: 1\n",
            "1:1: the key \"zzz\" is not known here; \
             known are defaults, nodes, namespaces, exemptions, provisioners and fencing",
        ),
        (
            "everybody may fence",
            "fencing:\n  accounts: [\"*\"]\n",
            "2:14: \"*\" names no account; give the whole name of a user or service account, \
             as in system:serviceaccount:NAMESPACE:NAME, with \"*\" for any text and \"?\" for \
             one character in it",
        ),
        (
            "unknown key of fencing",
            "fencing: {account: []}\n",
            "1:11: the key \"account\" is not known here; did you mean \"accounts\"? \
             Known are accounts",
        ),
        (
            "unknown outcome",
            "defaults:\n  outcomes:\n    deadlok: deny\n",
            "3:5: \"deadlok\" is not known here; did you mean \"deadlock\"? \
             Known are data-loss, deadlock, stuck, refused, delay and unknown",
        ),
        (
            "unknown action",
            "defaults:\n  outcomes:\n    deadlock: Deny\n",
            "3:15: \"Deny\" is not known here; did you mean \"deny\"? \
             Known are deny, fix, warn and ignore",
        ),
        (
            "action left out",
            "defaults:\n  outcomes:\n    deadlock:\n",
            "3:13: a value is missing here; write deny, fix, warn or ignore",
        ),
        (
            "unknown rule",
            "namespaces:\n- match: {names: [a]}\n  rules: {roling-update-overlap: warn}\n",
            "3:11: \"roling-update-overlap\" is not known here; did you mean \"rolling-update-overlap\"? ",
        ),
        (
            "unknown remedy",
            "defaults: {remedy: recreat}\n",
            "1:20: \"recreat\" is not known here; did you mean \"recreate\"? \
             Known are auto, recreate, zero-surge, colocate and drop-leftover",
        ),
        (
            "unknown overrides",
            "defaults: {overrides: allowed}\n",
            "1:23: \"allowed\" is not known here; did you mean \"allow\"? \
             Known are allow, namespaces and forbid",
        ),
        (
            "unknown controlled",
            "defaults: {controlled: deny}\n",
            "1:24: \"deny\" is not known here; known are warn and judge",
        ),
        (
            "unknown nodes",
            "nodes: 3\n",
            "1:8: \"3\" is not known here; known are auto, always and never",
        ),
        (
            "a word instead of a mapping",
            "defaults: deny\n",
            "1:11: a mapping (\"key: value\") is expected here",
        ),
        (
            "a mapping instead of a list",
            "namespaces:\n  match: {names: [a]}\n",
            "2:3: a list (\"- entry\" or \"[entry]\") is expected here",
        ),
        (
            "a list instead of a word",
            "defaults:\n  outcomes:\n    stuck: [deny]\n",
            "3:12: a single text value is expected here",
        ),
        (
            "not a policy at all",
            "hello\n",
            "1:1: a mapping (\"key: value\") is expected here",
        ),
        (
            "a key twice",
            "nodes: auto\nnodes: never\n",
            "2:1: the key \"nodes\" is given twice; keep one of them",
        ),
        (
            "an outcome twice",
            "defaults:\n  outcomes:\n    stuck: deny\n    stuck: warn\n",
            "4:5: the key \"stuck\" is given twice; keep one of them",
        ),
        (
            "a second document",
            "nodes: auto\n---\nnodes: never\n",
            "3:1: a policy is one YAML document; remove the \"---\" before this and all that follows it",
        ),
        (
            "no match",
            "namespaces:\n- remedy: auto\n",
            "2:3: the key \"match\" is missing from this entry; add it",
        ),
        (
            "an empty match",
            "namespaces:\n- match: {}\n",
            "2:10: this would match every namespace; give \"names\" or a \"selector\", \
             or write the settings under \"defaults\"",
        ),
        (
            "a name no namespace has",
            "namespaces:\n- match: {names: [shop, \"Shop/*\"]}\n",
            "2:25: no object can be called \"Shop/*\"; names are lower case letters, digits, \
             \"-\" and \".\", and here \"*\" stands for any text and \"?\" for one character",
        ),
        (
            "unknown operator",
            "namespaces:\n- match:\n    selector:\n      matchExpressions:\n      - {key: a, operator: Notin}\n",
            "5:28: \"Notin\" is not known here; did you mean \"NotIn\"? \
             Known are In, NotIn, Exists and DoesNotExist",
        ),
        (
            "In without values",
            "namespaces:\n- match:\n    selector:\n      matchExpressions:\n      - {key: a, operator: In}\n",
            "5:9: In and NotIn compare with \"values\"; give at least one",
        ),
        (
            "Exists with values",
            "namespaces:\n- match:\n    selector:\n      matchExpressions:\n      - key: a\n        operator: Exists\n        values: [b]\n",
            "5:9: Exists and DoesNotExist take no \"values\"; remove them",
        ),
        (
            "exemption without reason",
            "exemptions:\n- names: [web]\n",
            "2:3: the key \"reason\" is missing from this entry; add it",
        ),
        (
            "exemption with an empty reason",
            "exemptions:\n- names: [web]\n  reason: \" \"\n",
            "3:11: the reason is empty; say in a few words why these objects are exempt",
        ),
        (
            "exemption of everything",
            "exemptions:\n- reason: tired\n",
            "2:3: this would exempt everything; give at least one of \"namespaces\", \
             \"kinds\", \"names\" and \"rules\"",
        ),
        (
            "unknown kind",
            "exemptions:\n- kinds: [Deployments]\n  reason: r\n",
            "2:11: \"Deployments\" is not known here; did you mean \"Deployment\"? \
             Known are CloneSet, CronJob, DaemonSet, Deployment, DeploymentConfig, \
             HorizontalPodAutoscaler, Job, Node, PersistentVolumeClaim, Pod, ReplicaSet, \
             ReplicationController, Rollout, ScaledJob, ScaledObject, StatefulSet and \
             VolumeAttachment",
        ),
        (
            "unknown access mode",
            "provisioners:\n- name: csi.example.com\n  block: [RWO, RWZ]\n",
            "3:10: \"RWZ\" is no access mode; use ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod",
        ),
        (
            "unknown key of a provisioner",
            "provisioners:\n- name: csi.example.com\n  attachrequired: false\n",
            "3:3: the key \"attachrequired\" is not known here; did you mean \"attachRequired\"? \
             Known are name, filesystem, block, attachRequired and nodeLocal",
        ),
        (
            "not a boolean",
            "provisioners:\n- name: csi.example.com\n  attachRequired: perhaps\n",
            "3:19: true or false is expected here",
        ),
        (
            "provisioner without a name",
            "provisioners:\n- nodeLocal: true\n",
            "2:3: the key \"name\" is missing from this entry; add it",
        ),
        (
            "provisioner with an empty name",
            "provisioners:\n- name: ''\n  nodeLocal: true\n",
            "2:3: a provisioner in the policy has an empty name; give it the name its StorageClasses carry in `provisioner`",
        ),
        (
            "provisioner about which nothing is said",
            "provisioners:\n- name: csi.example.com\n",
            "2:3: the policy says nothing about provisioner \"csi.example.com\"; \
             state `filesystem`, `block`, `attachRequired` or `nodeLocal`, or drop it",
        ),
        (
            "provisioner twice",
            "provisioners:\n- {name: a, nodeLocal: true}\n- {name: a, block: []}\n",
            "3:3: the policy names provisioner \"a\" twice; keep one of the two",
        ),
        (
            "an alias to nowhere",
            "defaults: *other\n",
            "1:11: this is not valid YAML: alias references unknown anchor",
        ),
        (
            "a bracket left open",
            "defaults: {remedy: auto\n",
            "1:11: this is not valid YAML: unclosed bracket '{'",
        ),
        (
            "an error behind an alias",
            "defaults:\n  outcomes: &all {stuck: warn}\nnamespaces:\n- match: {names: [a]}\n  rules: *all\n",
            "5:10: \"stuck\" is not known here; ",
        ),
    ];
    let mut wrong = String::new();
    for (name, text, expected) in cases {
        let said = match Policy::parse(text, "policy.yaml") {
            Ok(_) => "no error".to_owned(),
            Err(error) => error.to_string(),
        };
        let expected = format!("policy.yaml:{expected}");
        let agrees = if expected.ends_with(' ') {
            said.starts_with(&expected)
        } else {
            said == expected
        };
        if !agrees {
            wrong += &format!("{name}\n  wanted {expected}\n  got    {said}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
