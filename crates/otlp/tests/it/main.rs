//! What is written reads back, and what is no message is an error.

use std::collections::BTreeMap;

use otlp::{
    Attributes, Encoding, Event, Family, Kind, Link, Record, Sample, Signal, Span, What, answer, decode, encode_logs,
    encode_metrics, encode_spans,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // A number that is whole comes back as one.
        (-1.0e9..1.0e9f64).prop_map(|n| Value::from(n.trunc() + 0.5)),
        ".{0,20}".prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z.]{1,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn attributes() -> impl Strategy<Value = Attributes> {
    proptest::collection::btree_map("[a-z.]{1,8}", value(), 0..4)
}

fn id(bytes: usize) -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        proptest::string::string_regex(&format!("[0-9a-f]{{{}}}", bytes * 2)).expect("a pattern")
    ]
}

fn record(what: impl Strategy<Value = What>) -> impl Strategy<Value = Record> {
    (1..u64::MAX, attributes(), "[a-z]{0,5}", attributes(), id(16), id(8), what).prop_map(
        |(time_ns, resource, scope, attributes, trace_id, span_id, what)| Record {
            time_ns,
            resource,
            scope,
            attributes,
            trace_id,
            span_id,
            what,
        },
    )
}

fn log() -> impl Strategy<Value = What> {
    (0..25i64, "[A-Z]{0,5}", value()).prop_map(|(severity_number, severity_text, body)| What::Log {
        severity_number,
        severity_text,
        body,
    })
}

fn span() -> impl Strategy<Value = What> {
    let event = (any::<u64>(), ".{0,9}", attributes()).prop_map(|(time_ns, name, attributes)| Event {
        time_ns,
        name,
        attributes,
    });
    let link = (id(16), id(8)).prop_map(|(trace_id, span_id)| Link { trace_id, span_id });
    let (events, links) = (proptest::collection::vec(event, 0..3), proptest::collection::vec(link, 0..3));
    let kind =
        prop_oneof![Just(""), Just("internal"), Just("server"), Just("client"), Just("producer"), Just("consumer")];
    let status = prop_oneof![Just(""), Just("ok"), Just("error")];
    (".{0,9}", id(8), kind, 1..u64::MAX, status, ".{0,9}", events, links).prop_map(
        |(name, parent_span_id, kind, end_ns, status, message, events, links)| {
            What::Span(Box::new(Span {
                name,
                parent_span_id,
                kind: kind.into(),
                end_ns,
                status: status.into(),
                message,
                events,
                links,
            }))
        },
    )
}

fn read(signal: Signal, bytes: &[u8]) -> Vec<Record> {
    let received = decode(signal, Encoding::Protobuf, bytes, 7).expect("a message");
    assert_eq!(received.refused, 0);
    received.records.iter().map(|json| serde_json::from_slice(json).expect("a record")).collect()
}

proptest! {
    #[test]
    fn logs_read_back(records in proptest::collection::vec(record(log()), 0..6)) {
        prop_assert_eq!(read(Signal::Logs, &encode_logs(&Attributes::new(), &records)), records);
    }

    #[test]
    fn spans_read_back(records in proptest::collection::vec(record(span()), 0..6)) {
        prop_assert_eq!(read(Signal::Traces, &encode_spans(&Attributes::new(), &records)), records);
    }

    /// Neither random bytes nor a message that was cut or changed is taken for more than it is; nothing panics.
    #[test]
    fn what_is_broken_is_refused_or_read(
        records in proptest::collection::vec(record(span()), 1..4),
        noise in proptest::collection::vec(any::<u8>(), 0..200),
        at in any::<prop::sample::Index>(),
        bit in 0u8..8,
    ) {
        let mut bytes = encode_spans(&Attributes::new(), &records);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        for signal in Signal::ALL {
            for encoding in [Encoding::Protobuf, Encoding::Json] {
                for bytes in [&bytes[..], &bytes[..at], &noise] {
                    if let Ok(received) = decode(signal, encoding, bytes, 7) {
                        prop_assert!(received.records.iter().all(|json| serde_json::from_slice::<Record>(json).is_ok()));
                    }
                }
            }
        }
    }
}

#[test]
fn a_message_within_a_message_without_end_is_refused() {
    let deep = format!("{}{}", r#"{"arrayValue":{"values":["#.repeat(200), "]}}".repeat(200));
    let json = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"body":{deep}}}]}}]}}]}}"#);
    assert!(decode(Signal::Logs, Encoding::Json, json.as_bytes(), 1).is_err());
}

/// A resource is repeated with every record: a small message must not become a large one.
#[test]
fn what_all_records_take_is_bounded() {
    let resource = BTreeMap::from([("padding".to_owned(), json!("x".repeat(100 << 10)))]);
    let what = What::Log { severity_number: 9, severity_text: String::new(), body: json!("y") };
    let (scope, trace_id, span_id) = (String::new(), String::new(), String::new());
    let one = Record {
        time_ns: 1,
        resource: Attributes::new(),
        scope,
        attributes: Attributes::new(),
        trace_id,
        span_id,
        what,
    };
    let bytes = encode_logs(&resource, &vec![one; 2_000]);
    assert!(bytes.len() < 200 << 10);
    let received = decode(Signal::Logs, Encoding::Protobuf, &bytes, 1).expect("a message");
    assert!(received.records.iter().map(Vec::len).sum::<usize>() <= 16 << 20);
    assert_eq!(received.records.len() + received.refused, 2_000);
}

#[test]
fn metrics_are_what_a_collector_reads() {
    let labels = |n: u64| BTreeMap::from([("n".to_owned(), json!(n))]);
    let histogram = Sample::Histogram { count: 3, sum: 4.5, bounds: vec![1.0, 2.0], buckets: vec![1, 0, 2] };
    let families = vec![
        Family {
            name: "a_total".into(),
            help: "A.".into(),
            kind: Kind::Counter,
            samples: vec![(labels(1), Sample::Number(2.0))],
        },
        Family {
            name: "b".into(),
            help: "B.".into(),
            kind: Kind::Gauge,
            samples: vec![(labels(2), Sample::Number(0.5))],
        },
        Family { name: "c".into(), help: "C.".into(), kind: Kind::Histogram, samples: vec![(labels(3), histogram)] },
    ];
    let bytes = encode_metrics(&BTreeMap::from([("service.name".to_owned(), json!("x"))]), families, 5, 9);
    let lines: Vec<String> =
        read(Signal::Metrics, &bytes).iter().map(|r| format!("{} {}", r.service(), r.text())).collect();
    assert_eq!(lines[..2], ["x a_total{n=1} 2.0", "x b{n=2} 0.5"]);
    assert!(lines[2].starts_with("x c{n=3} {\"bounds\":[1.0,2.0],\"buckets\":[1,0,2],\"count\":3"), "{}", lines[2]);
}

#[test]
fn an_answer_says_what_was_refused() {
    let json = answer(Signal::Logs, Encoding::Json, 2, "too large");
    let json: Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(json["partialSuccess"]["errorMessage"], "too large");
    assert!(answer(Signal::Traces, Encoding::Protobuf, 0, "").is_empty());
    assert_eq!(answer(Signal::Metrics, Encoding::Json, 0, ""), b"{}");
}
