//! Translates the protobuf of the Kubernetes API server into JSON.
//!
//! Watches in protobuf are smaller and take less time to read than watches in JSON.
//! [`watch::InProtobuf`] is a layer for an HTTP client that reads JSON: it requests watches in
//! protobuf and translates each event. [`object()`] translates one object:
//!
//! ```
//! // A Namespace called "shop": the prefix, and a message with the kind and the object.
//! let kind = *b"\x0a\x02v1\x12\x09Namespace";
//! let object = *b"\x0a\x06\x0a\x04shop";
//! let mut bytes = b"k8s\0".to_vec();
//! bytes.extend([0x0a, kind.len() as u8]);
//! bytes.extend(kind);
//! bytes.extend([0x12, object.len() as u8]);
//! bytes.extend(object);
//!
//! let json = kube_protobuf::object(&bytes)?;
//! let expected = br#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}"#;
//! assert_eq!(json, expected);
//! # Ok::<(), kube_protobuf::MalformedMessage>(())
//! ```
//!
//! This is no general protobuf library: it knows the kinds that the guard watches, and writes
//! only the fields that the guard reads. It skips other fields by their length, and encodes
//! nothing.
//!
//! Protobuf from the API server begins with `k8s` and a zero byte, followed by the message
//! `Unknown`, which contains the kind and the object's bytes. In a watch, that is the object of
//! a `WatchEvent` (`k8s.io/apimachinery`, `pkg/runtime/types_proto.go` and
//! `pkg/runtime/serializer/protobuf`). Tags, lengths and variable integers are those of the
//! protobuf encoding (<https://protobuf.dev/programming-guides/encoding>).

mod messages;
pub mod watch;

use jiff::Timestamp;
use serde_json::to_writer;

use messages::{Field, Shape, fields_of};

/// The prefix of all protobuf from the API server.
const MAGIC: &[u8] = b"k8s\0";

/// The bytes are not protobuf from the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The API server sent {0}.")]
pub struct MalformedMessage(&'static str);

/// Translates an event of a watch.
///
/// # Errors
///
/// When `bytes` are not a `WatchEvent` about an object of a known kind.
fn event(bytes: &[u8]) -> Result<Vec<u8>, MalformedMessage> {
    let (mut kind, mut object) = (&[][..], None);
    let mut message = Message(bytes);
    while let Some((number, value)) = message.field()? {
        match (number, value) {
            (1, Value::Bytes(bytes)) => kind = bytes,
            (2, Value::Bytes(extension)) => object = Some(only_bytes(extension, 1)?),
            _ => {}
        }
    }
    let object = object.ok_or(MalformedMessage("an event without an object"))?;
    let mut json = Vec::with_capacity(bytes.len());
    json.extend_from_slice(br#"{"type":"#);
    text(&mut json, kind)?;
    json.extend_from_slice(br#","object":"#);
    write_object(&mut json, object)?;
    json.push(b'}');
    Ok(json)
}

/// Translates an object, or a `Status`.
///
/// # Errors
///
/// When `bytes` are not an object of a known kind.
pub fn object(bytes: &[u8]) -> Result<Vec<u8>, MalformedMessage> {
    let mut json = Vec::with_capacity(bytes.len());
    write_object(&mut json, bytes)?;
    Ok(json)
}

fn write_object(json: &mut Vec<u8>, bytes: &[u8]) -> Result<(), MalformedMessage> {
    let bytes = bytes.strip_prefix(MAGIC).ok_or(MalformedMessage(
        "an object that is not encoded as protobuf",
    ))?;
    let (mut api_version, mut kind, mut raw) = (&[][..], &[][..], &[][..]);
    let mut unknown = Message(bytes);
    while let Some((number, value)) = unknown.field()? {
        match (number, value) {
            (1, Value::Bytes(kinds)) => {
                (api_version, kind) = (only_bytes(kinds, 1)?, only_bytes(kinds, 2)?);
            }
            (2, Value::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let fields = fields_of(kind).ok_or(MalformedMessage("an object of another kind"))?;
    json.extend_from_slice(br#"{"apiVersion":"#);
    text(json, api_version)?;
    json.extend_from_slice(br#","kind":"#);
    text(json, kind)?;
    write_fields(json, raw, fields, false)?;
    json.push(b'}');
    Ok(())
}

/// The last value of the field with this number; empty if there is none.
fn only_bytes(bytes: &[u8], wanted: u32) -> Result<&[u8], MalformedMessage> {
    let (mut message, mut found) = (Message(bytes), &[][..]);
    while let Some((number, value)) = message.field()? {
        if let (true, Value::Bytes(bytes)) = (number == wanted, value) {
            found = bytes;
        }
    }
    Ok(found)
}

/// Writes fields into an open object. `is_first`: the object is still empty. Returns whether it
/// still is.
fn write_fields(
    json: &mut Vec<u8>,
    bytes: &[u8],
    fields: &[Field],
    mut is_first: bool,
) -> Result<bool, MalformedMessage> {
    // The list or map that is being written: the number of its field, and its closing bracket.
    let mut open: Option<(u32, u8)> = None;
    let mut message = Message(bytes);
    while let Some((number, value)) = message.field()? {
        let Some(field) = fields.iter().find(|field| field.number == number) else {
            continue;
        };
        if let (Shape::Inlined(fields), Value::Bytes(bytes)) = (&field.shape, value) {
            close(json, &mut open);
            is_first = write_fields(json, bytes, fields, is_first)?;
            continue;
        }
        if open.is_some_and(|(number, _)| number == field.number) {
            json.push(b',');
        } else {
            close(json, &mut open);
            if !is_first {
                json.push(b',');
            }
            is_first = false;
            json.push(b'"');
            json.extend_from_slice(field.name.as_bytes());
            json.extend_from_slice(b"\":");
            if let Some((begin, end)) = field.shape.brackets() {
                json.push(begin);
                open = Some((number, end));
            }
        }
        write_value(json, value, &field.shape)?;
    }
    close(json, &mut open);
    Ok(is_first)
}

fn close(json: &mut Vec<u8>, open: &mut Option<(u32, u8)>) {
    json.extend(open.take().map(|(_, end)| end));
}

fn write_value(
    json: &mut Vec<u8>,
    value: Value<'_>,
    shape: &Shape,
) -> Result<(), MalformedMessage> {
    match (shape, value) {
        (Shape::Text | Shape::Texts, Value::Bytes(bytes)) => text(json, bytes),
        (Shape::Flag, Value::Number(number)) => {
            json.extend_from_slice(if number == 0 { b"false" } else { b"true" });
            Ok(())
        }
        (Shape::Number, Value::Number(number)) => {
            integer(json, number);
            Ok(())
        }
        (Shape::Object(fields) | Shape::Objects(fields), Value::Bytes(bytes)) => {
            json.push(b'{');
            write_fields(json, bytes, fields, true)?;
            json.push(b'}');
            Ok(())
        }
        (Shape::Time, Value::Bytes(time)) => write_time(json, time),
        (Shape::IntOrString, Value::Bytes(either)) => int_or_string(json, either),
        (Shape::TextByName, Value::Bytes(entry)) => {
            text(json, only_bytes(entry, 1)?)?;
            json.push(b':');
            text(json, only_bytes(entry, 2)?)
        }
        (Shape::QuantityByName, Value::Bytes(entry)) => {
            text(json, only_bytes(entry, 1)?)?;
            json.push(b':');
            text(json, only_bytes(only_bytes(entry, 2)?, 1)?)
        }
        _ => Err(MalformedMessage("a field of an unexpected type")),
    }
}

fn text(json: &mut Vec<u8>, bytes: &[u8]) -> Result<(), MalformedMessage> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| MalformedMessage("a text that is not UTF-8"))?;
    to_writer(json, text).map_err(|_| MalformedMessage("a text that has no form in JSON"))
}

/// Negative numbers are written as their two's complement.
#[allow(clippy::cast_possible_wrap, reason = "this reverses the encoding")]
fn integer(json: &mut Vec<u8>, number: u64) {
    json.extend_from_slice((number as i64).to_string().as_bytes());
}

/// `Time`: the seconds since 1970; empty for `null`.
fn write_time(json: &mut Vec<u8>, bytes: &[u8]) -> Result<(), MalformedMessage> {
    if bytes.is_empty() {
        json.extend_from_slice(b"null");
        return Ok(());
    }
    let (mut message, mut seconds) = (Message(bytes), 0);
    while let Some((number, value)) = message.field()? {
        if let (1, Value::Number(number)) = (number, value) {
            seconds = number;
        }
    }
    let time = Timestamp::from_second(seconds.cast_signed())
        .map_err(|_| MalformedMessage("a time out of range"))?;
    text(json, time.to_string().as_bytes())
}

/// `IntOrString`: its type, the number and the text.
fn int_or_string(json: &mut Vec<u8>, bytes: &[u8]) -> Result<(), MalformedMessage> {
    let (mut is_text, mut int, mut string) = (false, 0, &[][..]);
    let mut message = Message(bytes);
    while let Some((number, value)) = message.field()? {
        match (number, value) {
            (1, Value::Number(which)) => is_text = which != 0,
            (2, Value::Number(number)) => int = number,
            (3, Value::Bytes(bytes)) => string = bytes,
            _ => {}
        }
    }
    if is_text {
        return text(json, string);
    }
    integer(json, int);
    Ok(())
}

/// The rest of a message.
struct Message<'a>(&'a [u8]);

/// The value of a field.
#[derive(Clone, Copy)]
enum Value<'a> {
    Number(u64),
    /// A text, or a message.
    Bytes(&'a [u8]),
    /// A value of a type that no known field has.
    Other,
}

impl<'a> Message<'a> {
    /// The next field's number and value; `None` at the end.
    fn field(&mut self) -> Result<Option<(u32, Value<'a>)>, MalformedMessage> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => self.take(8).map(|_| Value::Other)?,
            2 => {
                let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Other)?,
            _ => {
                return Err(MalformedMessage("a field of an unknown type"));
            }
        };
        let number =
            u32::try_from(tag >> 3).map_err(|_| MalformedMessage("a field's number too large"))?;
        Ok(Some((number, value)))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], MalformedMessage> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(MalformedMessage("a message that is cut short"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// A variable integer: seven bits per byte, the lowest first.
    fn number(&mut self) -> Result<u64, MalformedMessage> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(MalformedMessage("a number of more than 64 bits"))
    }
}
