//! A bound on how deep a policy's expressions are, before anything is parsed: parser and interpreter follow them by recursion, and
//! a stack that runs over takes the whole process with it.

use regorus::unstable::{Lexer, Source, Token, TokenKind};

use crate::check::PolicyError;

/// Brackets inside brackets.
const NESTING_MAX: usize = 48;
/// Operators of one expression and of those around it. Each makes a tree at most one deeper.
const OPERATORS_MAX: usize = 128;

/// Refuses what is nested too deep, or can't be cut into tokens.
pub(crate) fn guard(source: &Source) -> Result<(), PolicyError> {
    let mut lexer = Lexer::new(source);
    // The operators so far of the expression in each open bracket.
    let mut open = vec![0];
    let mut after_operand = false;
    loop {
        let Token(kind, span) = lexer.next_token().map_err(|e| PolicyError::of(&e))?;
        let text = span.text();
        let top = open.last_mut().expect("the outermost is never closed");
        match kind {
            TokenKind::Eof => return Ok(()),
            TokenKind::Symbol => match text {
                "(" | "[" | "{" => {
                    *top += usize::from(after_operand && text != "{");
                    open.push(0);
                    after_operand = false;
                }
                ")" | "]" | "}" => {
                    if open.len() > 1 {
                        open.pop();
                    }
                    after_operand = true;
                }
                "," | ";" => {
                    *top = 0;
                    after_operand = false;
                }
                _ => {
                    *top += 1;
                    after_operand = false;
                }
            },
            TokenKind::Ident if text == "in" => {
                *top += 1;
                after_operand = false;
            }
            TokenKind::Ident | TokenKind::String | TokenKind::RawString | TokenKind::Number => {
                // A negative number after an operand is a difference to the parser.
                if text.starts_with('-') {
                    *top += 1;
                } else if after_operand {
                    // Two operands with nothing between them: another expression.
                    *top = 0;
                }
                after_operand = true;
            }
        }
        if open.len() > NESTING_MAX || open.iter().sum::<usize>() > OPERATORS_MAX {
            let message = format!(
                "an expression has more than {OPERATORS_MAX} operators or {NESTING_MAX} brackets inside each other"
            );
            return Err(PolicyError { message, line: span.line as usize, column: span.col as usize });
        }
    }
}
