//! Server-sent events: a parser that takes bytes as they come, whatever way they were cut.

use std::collections::VecDeque;

/// Longest line; a log chunk of 64 KiB takes at most six times that as JSON.
const LINE_BYTES_MAX: usize = 4 << 20;
/// Most data that one event may carry.
const DATA_BYTES_MAX: usize = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The last id that the stream named.
    pub id: Option<String>,
    /// `message` when the stream names none.
    pub event: String,
    pub data: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line or an event of the stream is too long")]
pub struct TooLong;

#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    /// The line before ended with CR: an LF right after belongs to it.
    after_cr: bool,
    past_start: bool,
    id: Option<String>,
    event: String,
    data: String,
    has_data: bool,
}

impl Parser {
    /// Takes the next bytes; whole events go to the end of `out`.
    pub fn feed(&mut self, bytes: &[u8], out: &mut VecDeque<SseEvent>) -> Result<(), TooLong> {
        for &byte in bytes {
            let after_cr = std::mem::take(&mut self.after_cr);
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => {
                    self.after_cr = byte == b'\r';
                    let line = std::mem::take(&mut self.line);
                    self.end_line(&line, out);
                    self.line = line;
                    self.line.clear();
                }
                _ => self.line.push(byte),
            }
            if self.line.len() > LINE_BYTES_MAX || self.data.len() > DATA_BYTES_MAX {
                return Err(TooLong);
            }
        }
        Ok(())
    }

    fn end_line(&mut self, line: &[u8], out: &mut VecDeque<SseEvent>) {
        let line = match std::mem::replace(&mut self.past_start, true) {
            true => line,
            false => line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line),
        };
        if line.is_empty() {
            return self.dispatch(out);
        }
        let text = String::from_utf8_lossy(line);
        let (field, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.event),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            // Comments (an empty field name), `retry` and what is unknown.
            _ => {}
        }
    }

    fn dispatch(&mut self, out: &mut VecDeque<SseEvent>) {
        let event = std::mem::take(&mut self.event);
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.has_data) {
            let event = if event.is_empty() { "message".to_owned() } else { event };
            out.push_back(SseEvent { id: self.id.clone().filter(|id| !id.is_empty()), event, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: Option<&str>, event: &str, data: &str) -> SseEvent {
        SseEvent { id: id.map(str::to_owned), event: event.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn the_same_events_come_out_wherever_the_bytes_are_cut() {
        let cases: [(&str, Vec<SseEvent>); 10] = [
            ("data: a\n\n", vec![event(None, "message", "a")]),
            ("data: a\r\n\r\n", vec![event(None, "message", "a")]),
            ("data: a\r\rdata: b\r\r", vec![event(None, "message", "a"), event(None, "message", "b")]),
            ("id: 7\nevent: chunk\ndata: {\"x\":1}\n\n", vec![event(Some("7"), "chunk", "{\"x\":1}")]),
            ("data: one\ndata: two\ndata:\n\n", vec![event(None, "message", "one\ntwo\n")]),
            (": keep-alive\n\n:\n\ndata:x\n\n", vec![event(None, "message", "x")]),
            ("id: 1\ndata: a\n\ndata: b\n\n", vec![event(Some("1"), "message", "a"), event(Some("1"), "message", "b")]),
            ("event: lost\n\ndata: a\n\n", vec![event(None, "message", "a")]),
            ("\u{feff}data: über\nretry: 5\nother\n\n", vec![event(None, "message", "über")]),
            ("data: whole\n\ndata: torn", vec![event(None, "message", "whole")]),
        ];
        for (text, expected) in cases {
            for cut in 0..=text.len() {
                let (mut parser, mut out) = (Parser::default(), VecDeque::new());
                let (head, tail) = text.as_bytes().split_at(cut);
                parser.feed(head, &mut out).expect("short");
                parser.feed(tail, &mut out).expect("short");
                assert_eq!(Vec::from(out), expected, "{text:?} cut at {cut}");
            }
            let (mut parser, mut out) = (Parser::default(), VecDeque::new());
            for byte in text.bytes() {
                parser.feed(&[byte], &mut out).expect("short");
            }
            assert_eq!(Vec::from(out), expected, "{text:?} byte by byte");
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut parser = Parser::default();
        assert_eq!(parser.feed(&vec![b'x'; LINE_BYTES_MAX + 1], &mut VecDeque::new()), Err(TooLong));
    }
}
