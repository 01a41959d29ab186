//! The log of a container, read once whatever is cut on the way: each line bears a time, by which reading goes on where it was.

/// A time as kubelets write it, `2026-03-01T12:00:00.000000000Z`, is never longer.
const STAMP_BYTES_MAX: usize = 40;
/// `2026-03-01T12:00:00`
const SECOND_BYTES: usize = 19;

/// Where reading is.
///
/// A log is asked for from a whole second on. What was delivered of that second is the beginning of what comes then, so it is
/// counted and left out.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// The time of the line that is read, until its end was seen.
    stamp: Vec<u8>,
    in_text: bool,
    /// Bytes of this line that are left out.
    skip: Skip,
    /// The newest time that was delivered.
    newest: Vec<u8>,
    /// Whole lines delivered since the second of `newest` began.
    lines: u64,
    /// Bytes delivered of a line that has not ended.
    open: Option<u64>,
    /// Lines that come again, and bytes of the one after them.
    again: u64,
    again_open: Option<u64>,
    /// Whether the line is among those that come again after a cut.
    counts: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Skip {
    #[default]
    Nothing,
    Bytes(u64),
    Line,
}

impl Tail {
    /// The log is opened again; returns from when on, if anything was read.
    pub(super) fn reopen(&mut self) -> Option<String> {
        (self.in_text, self.skip) = (false, Skip::Nothing);
        self.stamp.clear();
        (self.again, self.again_open) = (self.lines, self.open.filter(|_| self.counts));
        let second = self.newest.get(..SECOND_BYTES)?;
        let zone = self.newest.iter().skip(SECOND_BYTES).position(|b| matches!(b, b'Z' | b'+' | b'-'))?;
        let zone = &self.newest[SECOND_BYTES + zone..];
        Some(String::from_utf8_lossy(&[second, zone].concat()).into_owned())
    }

    /// Takes what was read, and adds what is new to `out`, without its times.
    pub(super) fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            if !self.in_text {
                let Some(end) = bytes.iter().position(|b| matches!(b, b' ' | b'\n')) else {
                    self.stamp.extend_from_slice(bytes);
                    if self.stamp.len() > STAMP_BYTES_MAX {
                        self.begin(out);
                    }
                    return;
                };
                self.stamp.extend_from_slice(&bytes[..end]);
                // An empty line has its blank, too; what ends here is no time.
                bytes = if bytes[end] == b' ' && is_stamp(&self.stamp) { &bytes[end + 1..] } else { &bytes[end..] };
                self.begin(out);
                continue;
            }
            let end = bytes.iter().position(|b| *b == b'\n').map(|at| at + 1);
            let (text, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            self.text(text, out);
            if end.is_some() {
                self.end();
            }
            bytes = rest;
        }
    }

    /// A line begins. What has no time is said by the kubelet itself.
    fn begin(&mut self, out: &mut Vec<u8>) {
        self.in_text = true;
        let stamp = std::mem::take(&mut self.stamp);
        let timed = is_stamp(&stamp);
        let known = timed && stamp <= self.newest;
        self.skip = Skip::Nothing;
        if known && self.again > 0 {
            self.again -= 1;
            self.skip = Skip::Line;
            return;
        }
        self.again = 0;
        if let Some(bytes) = self.again_open.take().filter(|_| known) {
            self.skip = Skip::Bytes(bytes);
            return;
        }
        // The rest of a line that was cut can't be had any more.
        if self.open.take().is_some() {
            out.push(b'\n');
            self.lines += u64::from(self.counts);
        }
        self.counts = timed;
        if timed && stamp > self.newest {
            if self.newest.get(..SECOND_BYTES) != stamp.get(..SECOND_BYTES) {
                self.lines = 0;
            }
            self.newest = stamp;
        } else if timed {
            self.counts = stamp.get(..SECOND_BYTES) == self.newest.get(..SECOND_BYTES);
        } else {
            out.extend_from_slice(&stamp);
        }
        self.open = Some(0);
    }

    fn text(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let new = match &mut self.skip {
            Skip::Line => return,
            Skip::Nothing => text,
            Skip::Bytes(left) => {
                let skipped = usize::try_from(*left).unwrap_or(usize::MAX).min(text.len());
                *left -= skipped as u64;
                &text[skipped..]
            }
        };
        out.extend_from_slice(new);
        self.open = Some(self.open.unwrap_or_default() + new.len() as u64);
    }

    fn end(&mut self) {
        self.in_text = false;
        if self.skip != Skip::Line {
            self.open = None;
            self.lines += u64::from(self.counts);
        }
    }
}

fn is_stamp(text: &[u8]) -> bool {
    text.len() > SECOND_BYTES
        && text.len() <= STAMP_BYTES_MAX
        && text[4] == b'-'
        && text[10] == b'T'
        && text[13] == b':'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> Vec<(String, String)> {
        let mut lines = Vec::new();
        for n in 0..40u32 {
            // Some in the same moment, some a little out of order, some seconds apart.
            let nanos = if n % 5 == 4 { (n / 5) * 1000 } else { (n / 5) * 1000 + n % 3 };
            let stamp = format!("2026-03-01T12:00:{:02}.{nanos:09}Z", n / 12);
            let text = if n % 7 == 0 { String::new() } else { format!("line {n} {}", "x".repeat(n as usize)) };
            lines.push((stamp, text));
        }
        lines
    }

    /// What the server sends from a second on.
    fn sent(lines: &[(String, String)], since: Option<&str>) -> Vec<u8> {
        let from = since.map_or("", |since| since.trim_end_matches('Z'));
        let meant = lines.iter().filter(|(stamp, _)| stamp.as_str() >= from);
        meant.map(|(stamp, text)| format!("{stamp} {text}\n")).collect::<String>().into_bytes()
    }

    #[test]
    fn wherever_it_is_cut_each_byte_comes_once() {
        let lines = log();
        let whole: String = lines.iter().map(|(_, text)| format!("{text}\n")).collect();
        let length = sent(&lines, None).len();
        for cut in 0..=length {
            for second in [0, 3, 17, 60] {
                let (mut tail, mut out) = (Tail::default(), Vec::new());
                assert_eq!(tail.reopen(), None);
                for piece in sent(&lines, None)[..cut].chunks(7) {
                    tail.take(piece, &mut out);
                }
                let since = tail.reopen();
                let again = sent(&lines, since.as_deref());
                tail.take(&again[..second.min(again.len())], &mut out);
                let since = tail.reopen();
                tail.take(&sent(&lines, since.as_deref()), &mut out);
                assert_eq!(String::from_utf8_lossy(&out), whole, "cut at {cut}, and after {second} more");
            }
        }
    }

    #[test]
    fn what_was_rotated_away_does_not_take_later_lines_along() {
        let lines = log();
        let (mut tail, mut out) = (Tail::default(), Vec::new());
        tail.take(&sent(&lines[..20], None), &mut out);
        tail.take(b"2026-03-01T12:00:01.900000000Z half", &mut out);
        assert_eq!(tail.reopen().as_deref(), Some("2026-03-01T12:00:01Z"));
        tail.take(b"2026-03-01T12:00:05.000000000Z later\n", &mut out);
        let text = String::from_utf8(out).expect("text");
        assert!(text.ends_with("half\nlater\n"), "{text}");
    }

    #[test]
    fn what_has_no_time_is_kept() {
        let (mut tail, mut out) = (Tail::default(), Vec::new());
        tail.take(b"failed to watch the log\nunable to retrieve\n2026-03-01T12:00:05.000000000+01:00 a b\n", &mut out);
        assert_eq!(out, b"failed to watch the log\nunable to retrieve\na b\n");
        assert_eq!(tail.reopen().as_deref(), Some("2026-03-01T12:00:05+01:00"));
    }
}
