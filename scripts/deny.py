#!/usr/bin/env python3
"""Checks the dependency tree against deny.toml: licences, banned crates, crates in two versions, sources.

It reads the part of cargo-deny's file that we use and refuses keys that it does not know, so that `make soak PART=deny`, which runs
cargo-deny itself, can't be stricter unnoticed. `deny.py --self-test` checks the checks.
"""
import collections
import json
import re
import subprocess
import sys
import tomllib

KNOWN = {
    "graph": {"targets", "all-features"},
    "licenses": {"allow"},
    "bans": {"wildcards", "allow-wildcard-paths", "multiple-versions", "deny", "skip"},
    "sources": {"unknown-registry", "unknown-git", "allow-registry"},
    "advisories": {"db-path", "git-fetch-with-cli", "yanked", "unmaintained", "ignore"},  # cargo-deny's alone
}


def is_allowed(expression, allowed):
    """Whether an SPDX expression can be met with the allowed licences alone."""
    words = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def either():
        met = both()
        while words and words[0] == "OR":
            words.pop(0)
            met = both() or met
        return met

    def both():
        met = one()
        while words and words[0] == "AND":
            words.pop(0)
            met = one() and met
        return met

    def one():
        word = words.pop(0)
        if word == "(":
            met = either()
            words.pop(0)
            return met
        if words and words[0] == "WITH":
            word = f"{word} WITH {words[1]}"
            del words[:2]
        return word in allowed

    return either()


def names(spec, package):
    """Whether `name` or `name@1.2` (a compatible version, as Cargo understands it) is this package."""
    name, _, version = spec["crate"].partition("@")
    if version and not re.fullmatch(r"[\d.]+", version):
        raise SystemExit(f"deny.toml: `{spec['crate']}`: write a version as 1.2")
    return name == package["name"] and (not version or f"{package['version']}.".startswith(f"{version}."))


def problems(rules, metadata):
    for section, values in rules.items():
        for key in values.keys() - KNOWN.get(section, set()):
            yield f"deny.toml: scripts/deny.py does not know `{section}.{key}`"
    packages = metadata["packages"]
    bans = rules["bans"]
    for spec in bans["deny"] + bans["skip"]:
        if not spec.get("reason"):
            yield f"deny.toml: `{spec['crate']}` needs a reason"
    licences = set(rules["licenses"]["allow"])
    sources = {f"registry+{url}" for url in rules["sources"]["allow-registry"]}
    versions = collections.defaultdict(list)
    for package in packages:
        what = f"{package['name']} {package['version']}"
        if not package["license"]:
            yield f"{what}: names no licence"
        elif not is_allowed(package["license"], licences):
            yield f"{what}: licence {package['license']} is not allowed"
        if package["source"] and package["source"] not in sources:
            yield f"{what}: comes from {package['source']}, which is not allowed"
        for spec in bans["deny"]:
            if names(spec, package):
                yield f"{what}: is banned: {spec['reason']}"
        for dependency in package["dependencies"] if not package["source"] else []:
            if dependency["req"] == "*" and not dependency.get("path"):
                yield f"{what}: names no version of {dependency['name']}"
        versions[package["name"]].append(package)
    unused = {spec["crate"] for spec in bans["skip"]}
    for name, found in versions.items():
        skipped = {p["version"]: [s["crate"] for s in bans["skip"] if names(s, p)] for p in found}
        if len(found) > 1:
            unused -= {crate for crates in skipped.values() for crate in crates}
        left = sorted(version for version, crates in skipped.items() if not crates)
        if len(left) > 1:
            yield f"{name}: is here as {' and '.join(left)}: use one version, or skip the older with a reason"
    for crate in sorted(unused):
        yield f"deny.toml: skips `{crate}`, and there is no second version of it any more"


def self_test():
    for expression, met in {
        "MIT": True, "MIT/Apache-2.0": True, "GPL-3.0": False, "GPL-3.0 OR MIT": True, "MIT AND GPL-3.0": False,
        "(MIT OR GPL-3.0) AND Apache-2.0": True, "(GPL-3.0 OR LGPL-3.0) AND MIT": False,
        "Apache-2.0 WITH LLVM-exception": False, "Apache-2.0 WITH LLVM-exception OR MIT": True,
    }.items():
        assert is_allowed(expression, {"MIT", "Apache-2.0"}) is met, expression

    def package(name, version, licence="MIT", source="registry+here", dependencies=()):
        return dict(name=name, version=version, license=licence, source=source, dependencies=dependencies)

    rules = {
        "licenses": {"allow": ["MIT"]}, "sources": {"allow-registry": ["here"]},
        "bans": {"deny": [dict(crate="openssl", reason="r")], "skip": [dict(crate="a@0.1", reason="r")]},
    }
    good = [package("a", "0.1.9"), package("a", "0.2.0"), package("ours", "0.1.0", source=None)]

    def found(packages, rules=rules):
        return list(problems(rules, dict(packages=packages)))

    assert found(good) == [], found(good)
    for bad in [
        package("b", "1.0.0", licence="GPL-3.0"), package("b", "1.0.0", licence=None), package("b", "1.0.0", source="git+there"),
        package("openssl", "0.10.0"), package("a", "0.3.0"), package("a", "0.10.0"),
        package("ours2", "0.1.0", source=None, dependencies=[dict(name="a", req="*")]),
    ]:
        assert len(found([*good, bad])) == 1, (bad, found([*good, bad]))
    assert len(found(good[1:])) == 1, "a skip that is not needed is named"
    assert len(found(good, {**rules, "graph": {"exclude": []}})) == 1, "a key that we don't know is named"


def main():
    self_test()
    if sys.argv[1:] == ["--self-test"]:
        return
    with open("deny.toml", "rb") as file:
        rules = tomllib.load(file)
    filters, built = [], set()
    for target in rules["graph"]["targets"]:
        filters += ["--filter-platform", target]
        # The metadata also has what no enabled feature leads to.
        tree = ["cargo", "tree", "--locked", "--workspace", "--all-features", "--prefix=none", "--format={p}", f"--target={target}"]
        built |= {tuple(line.split()[:2]) for line in subprocess.check_output(tree, text=True).splitlines() if line}
    metadata = ["cargo", "metadata", "--format-version=1", "--locked", "--all-features", *filters]
    metadata = json.loads(subprocess.check_output(metadata))
    metadata["packages"] = [p for p in metadata["packages"] if (p["name"], f"v{p['version']}") in built]
    found = list(problems(rules, metadata))
    for line in found:
        print(f"deny: {line}", file=sys.stderr)
    if found:
        sys.exit(1)
    print("deny: licences, bans, duplicates and sources are ok")


if __name__ == "__main__":
    main()
