//! A first app, for `ferry apps init`.

use crate::Tree;

macro_rules! files {
    ($($path:literal),* $(,)?) => { [$(($path, include_str!(concat!("starter/", $path)))),*] };
}

/// The files of a first app: it is valid, says what each thing is for, and needs neither a cloud nor git.
pub fn starter(name: &str) -> Tree {
    let mut tree = Tree::new(name);
    for (path, contents) in files![
        "README.md",
        "actions/greet.toml",
        "components/greeting.toml",
        "inputs.toml",
        "metadata.toml",
        "runner.toml",
        "sandbox.toml",
        "src/greeting/main.tf",
        "src/sandbox/main.tf",
    ] {
        tree.add(path, contents);
    }
    tree
}
