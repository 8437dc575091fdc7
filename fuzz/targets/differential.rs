//! A review as the webhook reads and judges it, beside the same review read by plain
//! serde_json into a tree and then judged. In a tree the last of two equal keys counts.

use std::borrow::Cow;
use std::ops::Range;

use engine::model::Text;
use engine::model::object::{Object, ObjectKind, ObjectRef};
use engine::model::workload::WorkloadKind;
use engine::verdict::{Document, EffectivePolicy, Mode, Review, Verdict, evaluate};
use jiff::Timestamp;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use webhook::admission::{Decision, Endpoint, Received};

use super::review::{cluster, policies};

/// Whatever the bytes are, both ways say the same.
pub fn run(bytes: &[u8]) {
    let [built_in, repairing] = policies();
    let sum = bytes
        .iter()
        .fold(0, |sum: u8, byte| sum.wrapping_add(*byte));
    let (endpoint, policy) = match sum % 2 {
        0 => (Endpoint::Validate, built_in),
        _ => (Endpoint::Mutate, repairing),
    };
    let ours = Received::read(bytes, Timestamp::UNIX_EPOCH).ok().map(|it| {
        let verdict = it.judge(endpoint, cluster().view(), policy);
        (it.answer(endpoint, &verdict), verdict)
    });
    let ours = ours.filter(|(answer, _)| answer.decision != Decision::Unreadable);
    // A tree refuses halves of surrogates, numbers without measure and nesting without end
    // where nobody reads them.
    if serde_json::from_slice::<Value>(bytes).is_err() {
        let is_json = serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
        assert!(ours.is_none() || is_json, "read, and no JSON");
        return;
    }
    let theirs = Tree::read(bytes);
    let Some((answer, verdict)) = ours else {
        let is_excused = theirs.as_ref().is_none_or(Tree::has_list_for_object);
        assert!(is_excused, "not read");
        return;
    };
    let theirs = theirs.expect("read, and of another shape");
    let verdict = format!("{verdict:?}");
    // A tree has no bounds.
    if !verdict.contains("longer than the guard reads") {
        assert_eq!(verdict, theirs.judge(endpoint, policy));
    }
    let kind = theirs.kind.map_or("other", ObjectKind::name);
    let facts = (answer.kind, answer.operation.name(), answer.dry_run);
    let operation = match theirs.operation.as_str() {
        "CREATE" | "UPDATE" | "DELETE" | "CONNECT" => theirs.operation.to_lowercase(),
        _ => "unknown".to_owned(),
    };
    assert_eq!(facts, (kind, operation.as_str(), theirs.dry_run));
    let body: Value = serde_json::from_slice(&answer.body).expect("the answer is JSON");
    assert_eq!(body["response"]["uid"], *theirs.uid);
}

/// A review whose objects are trees.
struct Tree {
    uid: String,
    group: String,
    kind: Option<ObjectKind>,
    operation: String,
    dry_run: bool,
    user: String,
    reference: ObjectRef,
    scaled: Option<WorkloadKind>,
    documents: [Option<Value>; 2],
    objects: [Option<Object>; 2],
}

/// The fields of the envelope in their order: their names count in any case.
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Pairs<'a> {
    fn of(json: &'a str) -> Option<Self> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        if json == "null" {
            return Some(Pairs(Vec::new()));
        }
        let mut json = serde_json::Deserializer::from_str(json);
        let pairs = json.deserialize_map(Fields).ok()?;
        json.end().ok()?;
        Some(pairs)
    }

    fn get(&self, name: &str) -> &'a str {
        let folded = |name: &str| name.to_lowercase().to_uppercase();
        let mut named = self.0.iter().rev();
        let last = named.find(|(key, _)| folded(key) == folded(name));
        last.map_or("null", |(_, json)| json.get())
    }

    fn text(&self, name: &str) -> Option<String> {
        let text: Option<String> = serde_json::from_str(self.get(name)).ok()?;
        Some(text.unwrap_or_default())
    }
}

/// As much of a name as is kept.
fn name(text: &str) -> Text {
    let mut end = text.len().min(254);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].into()
}

impl Tree {
    /// The review; `None` where it has not the shape of one.
    fn read(bytes: &[u8]) -> Option<Self> {
        let review = Pairs::of(str::from_utf8(bytes).ok()?)?;
        let request = Pairs::of(review.get("request"))?;
        let uid = request.text("uid")?;
        if uid.is_empty()
            || uid.len() > 128
            || review.text("apiVersion")? != "admission.k8s.io/v1"
            || review.text("kind")? != "AdmissionReview"
        {
            return None;
        }
        let gvk = Pairs::of(request.get("kind"))?;
        let [group, version, kind_name] = ["group", "version", "kind"].map(|it| gvk.text(it));
        let (group, version, kind_name) = (group?, version?, kind_name?);
        let kind = ObjectKind::of(&group, &kind_name);
        let resource = Pairs::of(request.get("resource"))?.text("resource")?;
        let sub_resource = request.text("subResource")?;
        let (own_name, namespace) = (request.text("name")?, request.text("namespace")?);
        let (own_name, namespace) = (name(&own_name), name(&namespace));
        let user = Pairs::of(request.get("userInfo"))?.text("username")?;
        let dry_run: Option<bool> = serde_json::from_str(request.get("dryRun")).ok()?;
        let is_scale = sub_resource == "scale";
        let scaled = is_scale
            .then(|| WorkloadKind::from_resource(&resource))
            .flatten();
        let documents = ["object", "oldObject"].map(|field| {
            let document: Value = serde_json::from_str(request.get(field)).unwrap_or_default();
            Some(document).filter(|document| !document.is_null())
        });
        let mut objects = [None, None];
        if let Some(kind) = kind.filter(|_| sub_resource.is_empty() || scaled.is_some()) {
            for (object, document) in objects.iter_mut().zip(&documents) {
                let Some(document) = document else { continue };
                *object = Some(kind.deserialize(document).ok()?);
                let metadata = object.as_mut().and_then(Object::metadata_mut);
                let Some(metadata) = metadata else { continue };
                if !namespace.is_empty() {
                    metadata.namespace = namespace.clone();
                }
                if metadata.name.is_empty() {
                    metadata.name = own_name.clone();
                }
            }
        }
        let metadata = objects.iter().flatten().next().and_then(Object::metadata);
        let shown = metadata.map(|it| it.shown_name()).unwrap_or_default();
        Some(Self {
            uid,
            kind,
            operation: request.text("operation")?,
            dry_run: dry_run.unwrap_or_default(),
            user,
            reference: ObjectRef {
                api_version: match group.as_str() {
                    "" => version.into(),
                    group => format!("{group}/{version}").into(),
                },
                kind: kind_name.into(),
                namespace: Some(namespace).filter(|it| !it.is_empty()),
                name: if shown.is_empty() { own_name } else { shown },
            },
            group,
            scaled,
            documents,
            objects,
        })
    }

    /// What serde reads as an object too, and neither the webhook nor Go does. Then the
    /// webhook does not read it in its plainest form either.
    fn has_list_for_object(&self) -> bool {
        let [object, old_object] = &self.documents;
        let kind = self.kind.map_or("", ObjectKind::name);
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u", "kind": {"group": self.group, "kind": kind},
            "object": object, "oldObject": old_object}});
        let plain = review.to_string();
        let read = Received::read(plain.as_bytes(), Timestamp::UNIX_EPOCH);
        plain.contains('[')
            && read.is_ok_and(|it| {
                let answer = it.answer(Endpoint::Validate, &Verdict::default());
                answer.decision == Decision::Unreadable
            })
    }

    fn judge(&self, endpoint: Endpoint, policy: &EffectivePolicy) -> String {
        let [object, old] = self.objects.each_ref().map(Option::as_ref);
        let object = match self.operation.as_str() {
            "CREATE" | "UPDATE" => object,
            "DELETE" => {
                old.filter(|old| matches!(old, Object::Node(_) | Object::VolumeAttachment(_)))
            }
            _ => None,
        };
        let Some(object) = object else {
            return format!("{:?}", Verdict::default());
        };
        let review = Review {
            object,
            old,
            reference: &self.reference,
            scaled: self.scaled,
            document: self,
            mode: match endpoint {
                Endpoint::Mutate => Mode::Admit,
                Endpoint::Validate => Mode::Judge,
            },
        };
        format!("{:?}", evaluate(&review, cluster().view(), policy))
    }
}

impl Document for Tree {
    fn object(&self) -> Option<&Value> {
        self.documents[0].as_ref()
    }

    fn changes_template(&self) -> bool {
        let [new, old] = self.documents.each_ref().map(|document| {
            let template = document
                .as_ref()
                .and_then(|it| it.pointer("/spec/template"));
            template.filter(|template| !template.is_null())
        });
        new != old
    }

    fn requester(&self) -> Option<Cow<'_, str>> {
        (!self.user.is_empty()).then_some(Cow::Borrowed(&*self.user))
    }

    fn deletes(&self) -> bool {
        self.operation == "DELETE"
    }

    fn moment(&self) -> Option<Timestamp> {
        Some(Timestamp::UNIX_EPOCH)
    }
}

/// Splitmix64: a seed's worth of choices.
pub struct Lot(pub u64);

impl Lot {
    fn draw(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = self.0;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((drawn ^ (drawn >> 31)) % below.max(1) as u64) as usize
    }

    fn one_of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.draw(texts.len())]
    }
}

/// A review and where the fields of its objects stand.
pub struct Seed {
    text: String,
    fields: Vec<Member>,
}

#[derive(Clone)]
struct Member {
    key: Range<usize>,
    value: Range<usize>,
}

const VALUES: [&str; 24] = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "-0",
    "3",
    "1.0",
    "1e2",
    "1e999",
    "9223372036854775808",
    r#""""#,
    r#""x""#,
    r#""25%""#,
    r#""\ud800""#,
    r#""\ud83d\ude00""#,
    "{}",
    "[]",
    "[null]",
    r#"[{}]"#,
    r#"{"claimName":"web-data"}"#,
    r#"{"type":"Recreate"}"#,
    r#"{"spec":{}}"#,
    r#"{"name":"data","persistentVolumeClaim":{"claimName":"web-data"}}"#,
];

const KEYS: [&str; 16] = [
    "spec",
    "metadata",
    "template",
    "replicas",
    "strategy",
    "type",
    "volumes",
    "claimName",
    "object",
    "oldObject",
    "kind",
    "operation",
    "deletionTimestamp",
    "labels",
    "annotations",
    "awsElasticBlockStore",
];

impl Seed {
    /// `None` where the bytes are not JSON.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Value>(bytes).ok()?;
        let text = String::from_utf8(bytes.to_vec()).ok()?;
        let fields = fields(text.as_bytes());
        (!fields.is_empty()).then_some(Self { text, fields })
    }

    /// The same with a few fields twice, escaped, in another case, of another value or deeper.
    pub fn mutated(&self, lot: &mut Lot) -> Vec<u8> {
        let mut edits: Vec<(Range<usize>, String)> =
            (0..=lot.draw(4)).map(|_| self.edit(lot)).collect();
        edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        let mut text = self.text.clone();
        let mut end = text.len();
        for (range, new) in edits {
            if range.end <= end {
                end = range.start;
                text.replace_range(range, &new);
            }
        }
        let mut bytes = text.into_bytes();
        match lot.draw(40) {
            0 => bytes.truncate(lot.draw(bytes.len())),
            1 => {
                let at = lot.draw(bytes.len());
                bytes[at] = b"{}[]\",:\\0x\xff"[lot.draw(11)];
            }
            _ => {}
        }
        bytes
    }

    fn edit(&self, lot: &mut Lot) -> (Range<usize>, String) {
        let text = |range: &Range<usize>| &self.text[range.clone()];
        let Member { key, value } = self.fields[lot.draw(self.fields.len())].clone();
        let other = self.fields[lot.draw(self.fields.len())].clone();
        let other_value = match lot.draw(3) {
            0 => text(&other.value),
            1 => text(&value),
            _ => lot.one_of(&VALUES),
        };
        let again = match lot.draw(5) {
            0 => in_another_case(text(&key), lot),
            1 => escaped(text(&key), lot),
            2 => format!("\"{}\"", lot.one_of(&KEYS)),
            _ => text(&key).to_owned(),
        };
        let after = value.end..value.end;
        match lot.draw(12) {
            0..4 => (after, format!(",{again}:{other_value}")),
            4 | 5 => (key.start..key.start, format!("{again}:{other_value},")),
            6 => (
                after,
                format!(",{}:{}", text(&other.key), text(&other.value)),
            ),
            7 => (key, again),
            8 | 9 => (value, other_value.to_owned()),
            10 => {
                let depth = [1, 1, 2, 200][lot.draw(4)];
                let inner = text(&value);
                let nested = match lot.draw(2) {
                    0 => format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth)),
                    _ => format!("{}{inner}{}", "{\"spec\":".repeat(depth), "}".repeat(depth)),
                };
                (value, nested)
            }
            _ => {
                let written = text(&value);
                let new = match written.strip_prefix('"') {
                    Some(_) => escaped(written, lot),
                    None => format!(" \n{written}\t"),
                };
                (value, new)
            }
        }
    }
}

/// The quoted text with one letter in the other case, or one that folds into it.
fn in_another_case(quoted: &str, lot: &mut Lot) -> String {
    let at = lot.draw(quoted.len());
    let other = |letter: char| match (letter, lot.draw(4)) {
        ('s', 0) => '\u{17F}',
        ('k', 0) => '\u{212A}',
        (letter, _) if letter.is_ascii_lowercase() => letter.to_ascii_uppercase(),
        (letter, _) => letter.to_ascii_lowercase(),
    };
    replaced(quoted, at, other)
}

/// The quoted text with one letter as an escape.
fn escaped(quoted: &str, lot: &mut Lot) -> String {
    let at = 1 + lot.draw(quoted.len().saturating_sub(2));
    match quoted.as_bytes().get(at) {
        // Not in the middle of an escape, nor the end of the text.
        Some(byte) if byte.is_ascii_alphabetic() && !quoted.contains('\\') => {
            let escape = format!("\\u{byte:04x}");
            format!("{}{escape}{}", &quoted[..at], &quoted[at + 1..])
        }
        _ => quoted.to_owned(),
    }
}

fn replaced(text: &str, at: usize, mut other: impl FnMut(char) -> char) -> String {
    let letters = text.char_indices();
    letters
        .map(|(place, letter)| if place == at { other(letter) } else { letter })
        .collect()
}

/// Where the fields of all objects in the JSON stand.
fn fields(json: &[u8]) -> Vec<Member> {
    let mut fields = Vec::new();
    let mut at = 0;
    while at < json.len() {
        if json[at] != b'"' {
            at += 1;
            continue;
        }
        let key = at..end_of(json, at);
        at = key.end;
        let space = |at: usize| {
            json[at..]
                .iter()
                .take_while(|it| it.is_ascii_whitespace())
                .count()
        };
        let colon = at + space(at);
        if json.get(colon) == Some(&b':') {
            let start = colon + 1 + space(colon + 1);
            fields.push(Member {
                key,
                value: start..end_of(json, start),
            });
            at = start;
        }
    }
    fields
}

/// Where the value that begins there ends.
fn end_of(json: &[u8], start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    loop {
        match json.get(at) {
            Some(b'"') => {
                at += 1;
                while json[at] != b'"' {
                    at += if json[at] == b'\\' { 2 } else { 1 };
                }
            }
            Some(b'{' | b'[') => depth += 1,
            Some(b'}' | b']') => depth -= 1,
            Some(b'a'..=b'z' | b'0'..=b'9' | b'-' | b'+' | b'.' | b'E') => {
                let is_plain = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-+.".contains(byte);
                at += json[at..].iter().take_while(is_plain).count() - 1;
            }
            _ => {}
        }
        at += 1;
        if depth == 0 || at >= json.len() {
            return at;
        }
    }
}
