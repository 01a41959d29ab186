//! A log by line numbers.

use model::Timestamp;

lean! {
    /// What a log consists of. Lines are numbered from 1, over all executions of its job.
    pub struct LogOutline {
        required {
            log_stream_id: String,
            lines: u64,
            /// More may come.
            open: bool,
            sections: Vec<LogSection>,
            /// Where a live tail goes on.
            position: String,
        }
        optional {
            job_id: String,
            job_name: String,
            job_status: String,
            install_id: String,
            install_name: String,
            workflow_id: String,
            step_id: String,
            /// Lines in whose place something is missing; the first 1,000.
            gaps: Vec<u64>,
            /// Lines that look like failures; the first 1,000.
            failures: Vec<u64>,
            failures_total: u64,
            note: String,
            started_at: Option<Timestamp>,
            finished_at: Option<Timestamp>,
            /// The error that the job ended with.
            error: String,
            /// Job needs a person to say how it ended.
            unknown: bool,
        }
    }

    /// A step of an execution.
    pub struct LogSection {
        required {
            name: String,
            from: u64,
            to: u64,
        }
        optional {
            /// 1 for the first execution.
            epoch: u64,
            /// `running`, `done` or `failed`.
            status: String,
            started_at: Option<Timestamp>,
            took_ms: u64,
        }
    }

    pub struct LogLines {
        required {
            from: u64,
            lines: Vec<LogLine>,
            /// Of the whole log, as far as it is known now.
            total: u64,
            position: String,
        }
        optional {}
    }

    pub struct LogLine {
        required {
            n: u64,
            time: Timestamp,
            text: String,
        }
        optional {
            /// `stdout`, `stderr` or `system`; stdout where it is absent.
            pipe: String,
            step: String,
            /// So many bytes are missing here.
            gap_bytes: Option<u64>,
            /// The line is longer: so many bytes of it are not here.
            cut_bytes: u64,
        }
    }

    /// Lines of a log that a search finds.
    pub struct LogMatches {
        required {
            /// Line numbers, in order.
            lines: Vec<u64>,
            total: u64,
        }
        optional {
            /// There are more than are listed.
            more: bool,
        }
    }
}
