//! Random secrets in random forms, cut at random places: nothing of them gets through, and little else is lost.
#![expect(clippy::disallowed_methods, reason = "a test has settings")]

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use mask::{Masker, Masks};

/// The same numbers in every run with the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    fn text(&mut self, alphabet: &str, least: usize, most: usize) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        let length = least + self.roll(most - least + 1);
        (0..length).map(|_| letters[self.roll(letters.len())]).collect()
    }
}

/// Of these no secret has any, so that nothing around a secret looks like a part of it.
const FILLER: &str = "zq. \n=-:";
const PLAIN: &str = "ABCDEFGHabcdefgh0123456789_";
const ODD: &str = "ABCab01 \"\\/?&%+<>'$é√";

fn secret(dice: &mut Dice) -> String {
    match dice.roll(5) {
        0 => dice.text(PLAIN, 6, 12),
        1 => dice.text(PLAIN, 20, 120),
        2 => format!("A{}b", dice.text(ODD, 4, 40)),
        3 => format!("{}\n{}", dice.text(PLAIN, 8, 40), dice.text(PLAIN, 8, 40)),
        _ => serde_json::json!({ "user": dice.text(PLAIN, 8, 12), "deep": [{ "key": dice.text(ODD, 12, 30) }] })
            .to_string(),
    }
}

fn wrapped(text: &str, at: usize) -> String {
    text.as_bytes().chunks(at).map(|line| String::from_utf8_lossy(line) + "\n").collect()
}

fn url(text: &str, kept: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || kept.as_bytes().contains(&b);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// What is printed, and what of it must not be seen.
fn shown(dice: &mut Dice, secret: &str) -> (String, Vec<String>) {
    let whole = |text: String| (text.clone(), vec![text]);
    match dice.roll(10) {
        0 | 1 => whole(secret.to_owned()),
        2 => whole(STANDARD.encode(secret)),
        3 => {
            // In the middle of something longer: what depends on the secret alone.
            let (before, after) = (dice.text("qwxyz", 0, 20), dice.text("qwxyz", 0, 20));
            let text = URL_SAFE_NO_PAD.encode(format!("{before}{secret}{after}"));
            let from = (before.len() * 8).div_ceil(6);
            let to = (before.len() + secret.len()) * 8 / 6;
            let core = text[from..to].to_owned();
            (text, vec![core])
        }
        4 => whole(hex::encode(secret)),
        5 => whole(hex::encode_upper(secret)),
        6 => {
            let json = serde_json::to_string(secret).expect("json");
            whole(json[1..json.len() - 1].to_owned())
        }
        7 => {
            let at = [64, 76][dice.roll(2)];
            let text = wrapped(&STANDARD.encode(secret), at);
            let lines = text.lines().map(str::to_owned).collect();
            (text, lines)
        }
        8 => match serde_json::from_str::<serde_json::Value>(secret) {
            Ok(value) if value.is_object() => {
                let key = value["deep"][0]["key"].as_str().expect("a key").to_owned();
                whole([value["user"].as_str().expect("a user").to_owned(), key][dice.roll(2)].clone())
            }
            _ => {
                let lines: Vec<&str> = secret.lines().collect();
                whole(lines[dice.roll(lines.len())].to_owned())
            }
        },
        _ => whole(url(secret, ["", "-._~", "-._~/"][dice.roll(3)])),
    }
}

#[test]
fn nothing_of_a_secret_gets_through_and_little_else_is_lost() {
    let cases: usize = std::env::var("FERRY_MASK_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(200_000);
    let seed = std::env::var("FERRY_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    const ROUND: usize = 2_000;
    let (mut bytes, mut filler, mut lost) = (0u64, 0u64, 0u64);
    for round in 0..cases.div_ceil(ROUND) {
        let dice = &mut Dice(seed + round as u64 * 1_000_003);
        let secrets: Vec<String> = (0..1 + dice.roll(6)).map(|_| secret(dice)).collect();
        let masks = Masks::new(&secrets);
        for case in 0..ROUND {
            let of = &secrets[dice.roll(secrets.len())];
            let (form, cores) = shown(dice, of);
            let (before, after) = (dice.text(FILLER, 0, 60), dice.text(FILLER, 0, 60));
            let text = format!("{before}{form}{after}");
            let mut masker = Masker::default();
            let (mut out, mut at) = (Vec::new(), 0);
            while at < text.len() {
                let end = (at + 1 + dice.roll(40)).min(text.len());
                masker.push(&masks, &text.as_bytes()[at..end], &mut out);
                at = end;
            }
            masker.flush(&masks, &mut out);
            bytes += text.len() as u64;
            let out = String::from_utf8_lossy(&out);
            for core in cores.iter().filter(|core| core.len() >= 6) {
                // Of what is random, shorter runs are equal by chance.
                let run = core.len().min(8);
                let starts =
                    (0..=core.len() - run).filter(|at| core.is_char_boundary(*at) && core.is_char_boundary(at + run));
                let leak = starts.map(|at| &core[at..at + run]).find(|part| out.contains(part));
                assert!(
                    leak.is_none(),
                    "seed {seed}, round {round}, case {case}: of {of:?} as {form:?} there is {leak:?} in {out:?}"
                );
            }
            for part in [&before, &after].into_iter().filter(|part| !part.is_empty()) {
                filler += part.len() as u64;
                lost += if out.contains(part.as_str()) { 0 } else { part.len() as u64 };
            }
        }
    }
    println!("{cases} cases, {bytes} bytes: nothing leaked; of {filler} bytes around secrets {lost} were lost");
    assert!(lost * 1_000 < filler, "{lost} of {filler} bytes that are no secret were lost");
}
