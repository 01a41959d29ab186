//! The app format: reading apps beside plain TOML parsing of the same bytes, rendering, and a sync that changes nothing.

use std::path::Path;
use std::time::Instant;

use config::{Options as Reading, Tree};
use serde_json::json;
use template::{Bounds, Data, Template};
use testkit::system::{Options, System, shown};

use crate::{Figure, percentile};

const ROUNDS: usize = 20;
const COMPONENTS: usize = 50;
/// Beside the repository, where they are: real apps.
const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");

pub(crate) async fn figures(options: Options) -> anyhow::Result<Vec<Figure>> {
    let mut figures = reading()?;
    figures.push(Figure::lower("render_1000_ms", render_ms()?, "ms", 50.0));
    let sync_ms = sync_ms(options.with(&model::env::setting("builds.launcher"), "process")).await?;
    figures.push(Figure::lower("sync_nochange_ms", sync_ms, "ms", 150.0));
    figures.push(Figure::lower("sync_nochange_50_ms", sync_ms, "ms", 300.0));
    figures.push(packing()?);
    Ok(figures)
}

fn median_ms(mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let at = Instant::now();
            work();
            at.elapsed().as_secs_f64() * 1000.0
        })
        .collect();
    percentile(&mut times, 0.5)
}

/// Reads every app of the corpus from memory; the largest is the one with the most TOML.
fn reading() -> anyhow::Result<Vec<Figure>> {
    let Ok(entries) = fs_err::read_dir(CORPUS) else {
        eprintln!("{CORPUS} is not here: validate_largest_ms and validate_all_ms are NOT measured");
        return Ok(Vec::new());
    };
    let mut apps = Vec::new();
    for entry in entries {
        let mut tree = Tree::new(entry?.file_name().to_string_lossy());
        let root = Path::new(CORPUS).join(&tree.name);
        fill(&mut tree, &root, "")?;
        apps.push(tree);
    }
    let toml_bytes = |tree: &Tree| toml_files(tree).map(str::len).sum::<usize>();
    apps.sort_by_key(toml_bytes);
    let validate = |apps: &[Tree]| {
        median_ms(|| {
            for tree in apps {
                std::hint::black_box(config::load(tree, Reading::default()));
            }
        })
    };
    let parse = |apps: &[Tree]| {
        median_ms(|| {
            for text in apps.iter().flat_map(toml_files) {
                let _ = std::hint::black_box(toml::from_str::<toml::Table>(text));
            }
        })
    };
    let largest = apps.last().map(std::slice::from_ref).unwrap_or_default();
    let mut figures = Vec::new();
    for (name, apps) in [("validate_largest_ms", largest), ("validate_all_ms", &apps[..])] {
        let floor = parse(apps);
        figures.push(Figure::lower(name, validate(apps), "ms", 8.0 * floor).over("plain TOML parsing", floor));
    }
    Ok(figures)
}

fn toml_files(tree: &Tree) -> impl Iterator<Item = &str> {
    tree.files
        .iter()
        .filter(|(path, _)| path.ends_with(".toml"))
        .filter_map(|(_, bytes)| std::str::from_utf8(bytes).ok())
}

fn fill(tree: &mut Tree, dir: &Path, prefix: &str) -> anyhow::Result<()> {
    for entry in fs_err::read_dir(dir)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            fill(tree, &entry.path(), &format!("{path}/"))?;
        } else if let Ok(bytes) = fs_err::read(entry.path()) {
            tree.add(path, bytes);
        }
    }
    Ok(())
}

/// A thousand values of a chart, parsed and rendered.
fn render_ms() -> anyhow::Result<f64> {
    let outputs: serde_json::Map<String, serde_json::Value> =
        (0..100).map(|n| (format!("key_{n}"), json!({ "name": format!("value {n}"), "list": [1, 2, 3] }))).collect();
    let root = json!({ "nuon": {
        "install": { "id": "ins1" }, "inputs": { "inputs": { "size": "3", "zone": "a" } },
        "components": { "net": { "outputs": outputs } },
    } });
    let data = Data::new(&root)?;
    let texts: Vec<String> = (0..1000)
        .map(|n| format!("{{{{ .nuon.install.id }}}}-{{{{ dig \"key_{}\" \"name\" \"none\" .nuon.components.net.outputs }}}} {{{{ if eq .nuon.inputs.inputs.size \"3\" }}}}three{{{{ else }}}}other{{{{ end }}}}", n % 100))
        .collect();
    Ok(median_ms(|| {
        for text in &texts {
            let rendered = Template::parse(text).and_then(|t| t.render_data(&data, &Bounds::default()));
            let _ = std::hint::black_box(rendered);
        }
    }))
}

/// Packs a directory of 5,000 files as a build does, beside `tar | gzip` of the same one.
fn packing() -> anyhow::Result<Figure> {
    let dir = tempfile::tempdir()?;
    let (root, to) = (dir.path().join("files"), dir.path().join("packed"));
    for n in 0..5_000 {
        let place = root.join(format!("d{}", n / 100));
        fs_err::create_dir_all(&place)?;
        let text = format!("# file {n}\n{}", "resource \"terraform_data\" \"x\" {}\n".repeat(20 + n % 80));
        fs_err::write(place.join(format!("f{n}.tf")), text)?;
    }
    let ours = median_ms(|| {
        let _ = std::hint::black_box(archive::pack_gzip(&root, &to, |_| false, u64::MAX));
    });
    let floor = median_ms(|| {
        let command = format!("tar -C {} -cf - . | gzip -6 >{}", root.display(), to.display());
        let _ = std::process::Command::new("sh").args(["-c", &command]).status();
    });
    Ok(Figure::lower("pack_5000_files_ms", ours, "ms", floor).over("tar | gzip", floor))
}

/// `ferry apps sync` of an app that is synced and built already, as a person waits for it.
async fn sync_ms(options: Options) -> anyhow::Result<f64> {
    let system = System::start(options).await;
    let dir = system.root().join("large");
    let path = dir.to_string_lossy().into_owned();
    let init = system.ferry(&["apps", "init", &path]).await;
    anyhow::ensure!(init.status.success(), "{}", shown(&init));
    for n in 0..COMPONENTS {
        let component = format!(
            "name = \"part_{n}\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"\n[local]\ndirectory = \"src/greeting\"\n[vars]\nid = \"{{{{ .nuon.install.id }}}}\"\n"
        );
        fs_err::write(dir.join(format!("components/part_{n}.toml")), component)?;
    }
    let mut times = Vec::new();
    for round in 0..=ROUNDS {
        let at = Instant::now();
        let synced = system.ferry(&["apps", "sync", &path]).await;
        anyhow::ensure!(synced.status.success(), "{}", shown(&synced));
        if round > 0 {
            times.push(at.elapsed().as_secs_f64() * 1000.0);
        }
    }
    Ok(percentile(&mut times, 0.5))
}
