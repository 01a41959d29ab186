//! Tokens. Outside of delimiters everything is text; inside, blanks matter: `.a .b` are two arguments, `.a.b` is one.

use std::fmt;

use crate::Fault;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Text(String),
    Open,
    Close,
    Space,
    Dot,
    Field(String),
    Variable(String),
    Word(String),
    Keyword(&'static str),
    Str(String),
    Int(i64),
    Float(f64),
    LeftParen,
    RightParen,
    Pipe,
    Comma,
    Declare,
    Assign,
    Eof,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Text(_) => write!(f, "text"),
            Token::Open => write!(f, "\"{{{{\""),
            Token::Close => write!(f, "\"}}}}\""),
            Token::Space => write!(f, "blank"),
            Token::Dot => write!(f, "<.>"),
            Token::Field(name) => write!(f, "<.{name}>"),
            Token::Variable(name) | Token::Word(name) => write!(f, "\"{name}\""),
            Token::Keyword(word) => write!(f, "<{word}>"),
            Token::Str(text) => write!(f, "{text:?}"),
            Token::Int(n) => write!(f, "\"{n}\""),
            Token::Float(n) => write!(f, "\"{n}\""),
            Token::LeftParen => write!(f, "\"(\""),
            Token::RightParen => write!(f, "\")\""),
            Token::Pipe => write!(f, "\"|\""),
            Token::Comma => write!(f, "\",\""),
            Token::Declare => write!(f, "\":=\""),
            Token::Assign => write!(f, "\"=\""),
            Token::Eof => write!(f, "end of the text"),
        }
    }
}

const KEYWORDS: [&str; 13] =
    ["block", "break", "continue", "define", "else", "end", "false", "if", "nil", "range", "template", "true", "with"];

const MAX_NUMBER_CHARS: usize = 100;

const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

pub(crate) struct Lexer<'a> {
    text: &'a str,
    pos: usize,
    /// Where the action around the current place was opened.
    opened: Option<usize>,
    /// Open parentheses of this action.
    parens: Vec<usize>,
    /// The delimiter before was `-}}`.
    trim: bool,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Lexer { text, pos: 0, opened: None, parens: Vec::new(), trim: false }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.pos..]
    }

    pub(crate) fn token(&mut self) -> Result<(usize, Token), Fault> {
        match self.opened {
            None => self.outside(),
            Some(opened) => self.inside(opened),
        }
    }

    /// Text up to the next delimiter; comments vanish.
    fn outside(&mut self) -> Result<(usize, Token), Fault> {
        let start = self.pos;
        let rest = self.rest();
        let open = rest.find("{{").unwrap_or(rest.len());
        let mut text = &rest[..open];
        let trim_left = std::mem::take(&mut self.trim);
        let trim_right = rest[open..].strip_prefix("{{-").is_some_and(|after| after.starts_with(BLANKS));
        if trim_left {
            text = text.trim_start_matches(BLANKS);
        }
        if trim_right {
            text = text.trim_end_matches(BLANKS);
        }
        self.pos += open;
        if !text.is_empty() {
            // The delimiter is read by the next call, which finds no text before it.
            return Ok((start, Token::Text(text.into())));
        }
        if open == rest.len() {
            return Ok((self.pos, Token::Eof));
        }
        let opened = self.pos;
        self.pos += if trim_right { 4 } else { 2 };
        if self.rest().starts_with("/*") {
            self.comment(opened)?;
            // No recursion: there may be many comments in a row.
            return Ok((self.pos, Token::Text(String::new())));
        }
        self.opened = Some(opened);
        Ok((opened, Token::Open))
    }

    fn comment(&mut self, opened: usize) -> Result<(), Fault> {
        let Some(end) = self.rest().find("*/") else {
            return Err(Fault::new(opened, "unclosed comment").hint("a comment ends with `*/}}`"));
        };
        self.pos += end + 2;
        if !self.closing() {
            return Err(
                Fault::new(self.pos, "comment ends before closing delimiter").hint("nothing but `}}` may follow `*/`")
            );
        }
        Ok(())
    }

    /// Reads a closing delimiter, if one stands here.
    fn closing(&mut self) -> bool {
        let rest = self.rest();
        if rest.starts_with("}}") {
            self.pos += 2;
            return true;
        }
        self.trim = rest.starts_with(BLANKS) && rest[1..].starts_with("-}}");
        if self.trim {
            self.pos += 4;
        }
        self.trim
    }

    fn inside(&mut self, opened: usize) -> Result<(usize, Token), Fault> {
        let start = self.pos;
        if self.closing() {
            if let Some(paren) = self.parens.first() {
                return Err(Fault::new(*paren, "unclosed left paren"));
            }
            self.opened = None;
            return Ok((start, Token::Close));
        }
        let Some(next) = self.rest().chars().next() else {
            return Err(Fault::new(opened, "unclosed action").hint("add `}}`"));
        };
        let token = match next {
            ' ' | '\t' | '\r' | '\n' => self.space(),
            '"' => self.quoted(start)?,
            '`' => self.raw(start)?,
            '\'' => self.character(start)?,
            '|' => self.sign(1, Token::Pipe),
            ',' => self.sign(1, Token::Comma),
            '=' => self.sign(1, Token::Assign),
            ':' if self.rest().starts_with(":=") => self.sign(2, Token::Declare),
            ':' => return Err(Fault::new(start, "expected :=")),
            '(' => {
                self.parens.push(start);
                self.sign(1, Token::LeftParen)
            }
            ')' if self.parens.pop().is_some() => self.sign(1, Token::RightParen),
            ')' => return Err(Fault::new(start, "unexpected right paren")),
            '+' | '-' | '0'..='9' => self.number(start)?,
            '.' if self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => self.number(start)?,
            '.' | '$' => self.field(start, next)?,
            c if is_letter(c) => self.word(start)?,
            c => return Err(unexpected_character(start, c)),
        };
        Ok((start, token))
    }

    fn sign(&mut self, bytes: usize, token: Token) -> Token {
        self.pos += bytes;
        token
    }

    fn space(&mut self) -> Token {
        while self.rest().starts_with(BLANKS) && !self.rest()[1..].starts_with("-}}") {
            self.pos += 1;
        }
        Token::Space
    }

    fn name(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
        self.pos += end;
        &rest[..end]
    }

    /// A name ends where something else may begin.
    fn check_end(&self, start: usize) -> Result<(), Fault> {
        match self.rest().chars().next() {
            None | Some(' ' | '\t' | '\r' | '\n' | '.' | ',' | '|' | ':' | '(' | ')') => Ok(()),
            Some(_) if self.rest().starts_with("}}") => Ok(()),
            Some('-') => {
                Err(Fault::new(self.pos, format!("bad character U+002D '-' after {}", &self.text[start..self.pos]))
                    .hint("a key with a hyphen is reached by `index`: `index .a \"b-c\"`"))
            }
            Some(c) => Err(unexpected_character(self.pos, c)),
        }
    }

    fn field(&mut self, start: usize, sign: char) -> Result<Token, Fault> {
        self.pos += 1;
        let name = self.name();
        self.check_end(start)?;
        Ok(match (sign, name) {
            ('$', name) => Token::Variable(format!("${name}")),
            (_, "") => Token::Dot,
            (_, name) => Token::Field(name.into()),
        })
    }

    fn word(&mut self, start: usize) -> Result<Token, Fault> {
        let name = self.name();
        self.check_end(start)?;
        Ok(match KEYWORDS.iter().find(|word| **word == name) {
            Some(word) => Token::Keyword(word),
            None => Token::Word(name.into()),
        })
    }

    fn raw(&mut self, start: usize) -> Result<Token, Fault> {
        let Some(end) = self.rest()[1..].find('`') else {
            return Err(Fault::new(start, "unterminated raw quoted string"));
        };
        let text = self.rest()[1..=end].replace('\r', "");
        self.pos += end + 2;
        Ok(Token::Str(text))
    }

    fn quoted(&mut self, start: usize) -> Result<Token, Fault> {
        let mut bytes = Vec::new();
        self.pos += 1;
        loop {
            match self.rest().chars().next() {
                None | Some('\n') => {
                    return Err(Fault::new(start, "unterminated quoted string")
                        .hint("a text of several lines stands in backquotes"));
                }
                Some('"') => break,
                Some('\\') => self.escape(start, '"', &mut bytes)?,
                Some(c) => {
                    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    self.pos += c.len_utf8();
                }
            }
        }
        self.pos += 1;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Token::Str(text)),
            Err(_) => Err(Fault::new(start, "the string is not UTF-8")),
        }
    }

    fn character(&mut self, start: usize) -> Result<Token, Fault> {
        let mut bytes = Vec::new();
        self.pos += 1;
        match self.rest().chars().next() {
            None | Some('\n' | '\'') => return Err(Fault::new(start, "malformed character constant")),
            Some('\\') => self.escape(start, '\'', &mut bytes)?,
            Some(c) => {
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                self.pos += c.len_utf8();
            }
        }
        let one = match (String::from_utf8(bytes.clone()), bytes.as_slice()) {
            (Ok(text), _) => text.chars().next().map(|c| i64::from(u32::from(c))),
            (Err(_), [byte]) => Some(i64::from(*byte)),
            _ => None,
        };
        match one {
            Some(n) if self.rest().starts_with('\'') => Ok(self.sign(1, Token::Int(n))),
            _ => Err(Fault::new(start, "malformed character constant").hint("a text stands in double quotes")),
        }
    }

    /// One escape sequence, as in Go's strings; `quote` is the quote that may be escaped.
    fn escape(&mut self, start: usize, quote: char, bytes: &mut Vec<u8>) -> Result<(), Fault> {
        let bad =
            |pos| Fault::new(pos, "invalid escape in a string").hint("write `\\\\` for a backslash, or use backquotes");
        let at = self.pos;
        let Some(kind) = self.rest()[1..].chars().next() else {
            return Err(Fault::new(start, "unterminated quoted string"));
        };
        self.pos += 1 + kind.len_utf8();
        let simple = match kind {
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' => b'\\',
            c if c == quote => quote as u8,
            'x' => {
                return self
                    .digits(2, 16)
                    .and_then(|n| u8::try_from(n).ok())
                    .map(|byte| bytes.push(byte))
                    .ok_or_else(|| bad(at));
            }
            'u' | 'U' => {
                let n =
                    self.digits(if kind == 'u' { 4 } else { 8 }, 16).and_then(char::from_u32).ok_or_else(|| bad(at))?;
                bytes.extend_from_slice(n.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            '0'..='7' => {
                self.pos -= 1;
                return self
                    .digits(3, 8)
                    .and_then(|n| u8::try_from(n).ok())
                    .map(|byte| bytes.push(byte))
                    .ok_or_else(|| bad(at));
            }
            _ => return Err(bad(at)),
        };
        bytes.push(simple);
        Ok(())
    }

    fn digits(&mut self, count: usize, radix: u32) -> Option<u32> {
        let digits = self.rest().get(..count)?;
        self.pos += count;
        if digits.starts_with('+') { None } else { u32::from_str_radix(digits, radix).ok() }
    }

    fn number(&mut self, start: usize) -> Result<Token, Fault> {
        let rest = self.rest();
        let mut end = 0;
        for (at, c) in rest.char_indices().take(MAX_NUMBER_CHARS) {
            let after_exponent =
                matches!(rest[..at].bytes().last(), Some(b'e' | b'E' | b'p' | b'P')) && !is_hex_integer(&rest[..at]);
            if !(is_letter(c) || c == '.' || (matches!(c, '+' | '-') && (at == 0 || after_exponent))) {
                break;
            }
            end = at + c.len_utf8();
        }
        let text = &rest[..end];
        self.pos += end;
        match integer(text).map(Token::Int).or_else(|| float(text).map(Token::Float)) {
            Some(token) => Ok(token),
            None => Err(Fault::new(start, format!("bad number syntax: {text:?}"))),
        }
    }
}

fn is_letter(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn unexpected_character(pos: usize, c: char) -> Fault {
    Fault::new(pos, format!("unexpected bad character U+{:04X} '{c}' in command", u32::from(c)))
}

/// `0x1e` ends in a digit, not in an exponent.
fn is_hex_integer(text: &str) -> bool {
    let text = text.trim_start_matches(['+', '-']);
    (text.starts_with("0x") || text.starts_with("0X")) && !text.contains(['p', 'P'])
}

/// An integer as Go writes it: `0x1f`, `0b1`, `017`, `1_000`.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        Some(_) if lower.starts_with('0') => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    if !digits.starts_with(|c: char| c.is_digit(radix) || (c == '_' && lower.starts_with('0')))
        || digits.ends_with('_')
        || digits.contains("__")
    {
        return None;
    }
    i64::from_str_radix(&format!("{sign}{}", digits.replace('_', "")), radix).ok()
}

fn float(text: &str) -> Option<f64> {
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    // An integer that does not fit is a mistake, not a float.
    if !text.chars().all(plain) || !text.contains(['.', 'e', 'E']) || !text.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|n: &f64| n.is_finite())
}
