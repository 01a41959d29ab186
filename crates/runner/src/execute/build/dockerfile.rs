//! What must be known of a Dockerfile before it is built: its stages, and the images that it starts from.

use std::collections::BTreeMap;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Dockerfile {
    /// Names of its stages; empty for one without.
    pub(super) stages: Vec<String>,
    /// Images that are neither a stage nor `scratch`, each once.
    pub(super) images: Vec<String>,
}

impl Dockerfile {
    pub(super) fn has_stage(&self, name: &str) -> bool {
        let numbered = name.parse::<usize>().is_ok_and(|n| n < self.stages.len());
        numbered || self.stages.iter().any(|stage| !stage.is_empty() && stage.eq_ignore_ascii_case(name))
    }
}

/// Reads what can be read: the builder itself says what is wrong with the rest.
pub(super) fn read(text: &str, args: &BTreeMap<String, String>) -> Dockerfile {
    let mut found = Dockerfile::default();
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for line in lines(text) {
        let mut words = line.split_whitespace();
        let keyword = words.next().unwrap_or_default().to_ascii_uppercase();
        match keyword.as_str() {
            "ARG" if found.stages.is_empty() => {
                for word in words {
                    let (name, default) = word.split_once('=').unwrap_or((word, ""));
                    let value = args.get(name).cloned();
                    known.insert(name.into(), value.unwrap_or_else(|| default.trim_matches(['"', '\'']).into()));
                }
            }
            "FROM" => {
                let words: Vec<&str> = words.filter(|word| !word.starts_with("--")).collect();
                let image = filled(words.first().copied().unwrap_or_default(), &known);
                found.note(&image);
                let named = words.get(1).is_some_and(|word| word.eq_ignore_ascii_case("as"));
                found.stages.push(if named { words.get(2).copied().unwrap_or_default().into() } else { String::new() });
            }
            "COPY" | "ADD" | "RUN" => {
                for word in words.take_while(|word| word.starts_with("--")) {
                    let from = word.strip_prefix("--from=");
                    let mount = word
                        .strip_prefix("--mount=")
                        .and_then(|options| options.split(',').find_map(|option| option.strip_prefix("from=")));
                    if let Some(image) = from.or(mount) {
                        found.note(&filled(image, &known));
                    }
                }
            }
            _ => {}
        }
    }
    found
}

impl Dockerfile {
    fn note(&mut self, image: &str) {
        let known = image.is_empty() || image == "scratch" || self.has_stage(image);
        if !known && !self.images.iter().any(|one| one == image) {
            self.images.push(image.to_owned());
        }
    }
}

/// Instructions, each in one line, without comments.
fn lines(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let (part, more) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        match found.last_mut().filter(|_| goes_on) {
            Some(last) => {
                last.push(' ');
                last.push_str(part);
            }
            None => found.push(part.to_owned()),
        }
        goes_on = more;
    }
    found
}

/// `$NAME`, `${NAME}` and `${NAME:-default}`.
fn filled(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let (name, next) = match after.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
            Some(braced) => braced,
            None => {
                let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                after.split_at(end)
            }
        };
        let (name, default) = name.split_once(":-").unwrap_or((name, ""));
        let value = values.get(name).map(String::as_str).filter(|value| !value.is_empty());
        out.push_str(value.unwrap_or(default));
        rest = next;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_and_images_are_found() {
        let text = "# syntax=x\nARG BASE=debian:12\nARG TAG\nFROM --platform=linux/amd64 ${BASE} AS Build\nARG BASE=other\n\
                    RUN --mount=type=cache,from=cache/img make \\\n  # a comment\n  all\nfrom host:5000/base:$TAG\n\
                    COPY --from=build /a /a\nCOPY --from=0 /b /b\nCOPY --from=tools/x:1 /c /c\nFROM scratch as last\nFROM ${NONE:-alpine}";
        let args = BTreeMap::from([("TAG".to_owned(), "7".to_owned())]);
        let found = read(text, &args);
        assert_eq!(found.stages, ["Build", "", "last", ""]);
        assert_eq!(found.images, ["debian:12", "cache/img", "host:5000/base:7", "tools/x:1", "alpine"]);
        assert!(found.has_stage("build") && found.has_stage("3") && !found.has_stage("4") && !found.has_stage("nope"));
    }

    #[test]
    fn nonsense_is_left_to_the_builder() {
        for text in ["", "FROM", "FROM $", "FROM ${", "ARG", "COPY --from=", "FROM a as", "\\", "RUN --mount="] {
            let _ = read(text, &BTreeMap::new());
        }
    }
}
