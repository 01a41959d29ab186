//! Settings: layers, limits, secrets.

use server::config::ServerConfig;

fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

#[test]
fn layers_override_each_other_and_say_so() {
    let dir = std::env::temp_dir().join(format!("ferry-config-{}", std::process::id()));
    fs_err::create_dir_all(&dir).expect("dir");
    let file = dir.join("ferry.toml");
    fs_err::write(&file, "[timing]\nlease_s = 60\nhold_s = 5\n").expect("write");
    let (config, explained) =
        ServerConfig::load(Some(&file), env(&[("FERRY_TIMING__HOLD_S", "7"), ("FERRY_URL", "x")])).expect("config");
    assert_eq!((config.timing.hold_s, config.timing.lease_s), (7, 60));
    let origin = |key: &str| explained.iter().find(|e| e.key == key).expect(key).origin.to_string();
    assert_eq!(origin("timing.hold_s"), "environment (FERRY_TIMING__HOLD_S)");
    assert_eq!(origin("timing.lease_s"), "file");
    assert_eq!(origin("control.listen"), "default");
    fs_err::write(&file, "[timing]\nlaese_s = 60\n").expect("write");
    let error = ServerConfig::load(Some(&file), env(&[])).expect_err("unknown key");
    assert!(error.to_string().contains("timing.laese_s"), "{error}");
    fs_err::remove_dir_all(dir).expect("clean");
}

#[test]
fn bad_values_are_named() {
    for (name, value, part) in [
        ("FERRY_TIMING__LEASE_S", "soon", "whole number"),
        ("FERRY_TIMING__LEASE_S", "5", "at most half"),
        ("FERRY_TIMING__LAESE_S", "5", "names no setting"),
        ("FERRY_LOG__FORMAT", "xml", "use `json` or `text`"),
        ("FERRY_TIMING__LEASE_S", "31536000000", "timing.lease_s is 31536000000; use 1 to 86400"),
        ("FERRY_TIMING__HOLD_S", "0", "timing.hold_s is 0; use 1 to 3600"),
        ("FERRY_LIMITS__BODY_BYTES", "-1", "limits.body_bytes is -1; use 1024 to 1073741824"),
        ("FERRY_REGISTRY__SWEEP_S", "0", "registry.sweep_s is 0"),
        ("FERRY_STORAGE__ORPHANS_S", "0", "storage.orphans_s is 0; use 600 to"),
        ("FERRY_DATABASE__CONNECTIONS", "100000", "database.connections is 100000; use 1 to 1000"),
    ] {
        let error = ServerConfig::load(None, env(&[(name, value)])).expect_err(name);
        assert!(format!("{error:#}").contains(part), "{error:#}");
    }
}

/// Every number has a range, and its default is in it.
#[test]
fn every_number_is_bounded() {
    let (_, explained) = ServerConfig::load(None, env(&[])).expect("the defaults are good");
    for found in explained.iter().filter(|e| e.value.parse::<i64>().is_ok()) {
        let name = format!("FERRY_{}", found.key.to_uppercase().replace('.', "__"));
        let error = ServerConfig::load(None, env(&[(&name, "9000000000000000000")])).expect_err(&found.key);
        assert!(format!("{error:#}").contains(&format!("{} is 9000000000000000000; use ", found.key)), "{error:#}");
    }
}

#[test]
fn secrets_are_not_shown() {
    let url = [("FERRY_DATABASE__URL", "postgres://u:pa:ss@h/x")];
    let (config, explained) = ServerConfig::load(None, env(&url)).expect("config");
    assert_eq!(config.database.url, url[0].1);
    let shown = &explained.iter().find(|e| e.key == "database.url").expect("there").value;
    assert_eq!(shown, "\"postgres://u:(secret)@h/x\"");
    let (config, explained) =
        ServerConfig::load(None, env(&[("FERRY_SECRETS__MASTER_KEY", "m1:abc")])).expect("config");
    assert_eq!(config.secrets.master_key.as_deref(), Some("m1:abc"));
    assert!(explained.iter().all(|e| !e.value.contains("abc")));
}
