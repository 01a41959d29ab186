#!/usr/bin/env python3
"""Runs the test binaries that `cargo test --no-run --message-format=json` built, side by side, all of them even when one fails.

run-tests.py MESSAGES LOG_DIR SKIPPED: prints each binary's result, then the failed tests with their output, then the skipped
tests by name. The last line counts: "N passed, N failed, N skipped". Exits 1 when a test failed.
run-tests.py MESSAGES --path PACKAGE TARGET: prints where that binary is.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

# The process tests wait more than they work, so they start first and have threads of their own.
PROCESS_TESTS = ("ferry", "it")
PROCESS_THREADS = os.environ.get("FERRY_PROCESS_TEST_THREADS", "5")
# The others work more than they wait, beside them.
OTHER_THREADS = "2"
OTHER_BINARIES_AT_ONCE = 1
RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.M)


def binaries(messages):
    found = {}
    for line in pathlib.Path(messages).read_text().splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            package = pathlib.Path(message["manifest_path"]).parent
            found[message["executable"]] = (package, message["target"]["name"])
    return [(package, target, executable) for executable, (package, target) in sorted(found.items())]


def run(binary, log_dir):
    package, target, executable = binary
    is_process_test = (package.name, target) == PROCESS_TESTS
    log = log_dir / f"{package.name}-{target}.log"
    env = dict(os.environ, CARGO_MANIFEST_DIR=str(package), CARGO_PKG_NAME=package.name)
    env.setdefault("RUST_TEST_THREADS", PROCESS_THREADS if is_process_test else OTHER_THREADS)
    started = time.monotonic()
    with open(log, "wb") as out:
        status = subprocess.call([executable], cwd=package, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    text = log.read_text(errors="replace")
    counts = RESULT.search(text)
    passed, failed = (int(counts[1]), int(counts[2])) if counts else (0, 1)
    if status != 0 and failed == 0:
        failed = 1
    seconds = time.monotonic() - started
    if passed or failed:
        print(f"{package.name} {target}: {passed} passed, {failed} failed, {seconds:.0f} s", flush=True)
    if failed:
        at = text.find("\nfailures:\n")
        print(text[at:] if at >= 0 else text[-20000:], flush=True)
        print(f"The whole log: {log}", flush=True)
    return passed, failed


def main():
    if sys.argv[2] == "--path":
        print(*(executable for package, target, executable in binaries(sys.argv[1]) if [package.name, target] == sys.argv[3:]))
        return
    messages, log_dir, skipped_file = sys.argv[1:]
    log_dir = pathlib.Path(log_dir)
    log_dir.mkdir(parents=True, exist_ok=True)
    pathlib.Path(skipped_file).write_text("")
    os.environ["FERRY_TEST_SKIPPED"] = str(pathlib.Path(skipped_file).resolve())
    all_binaries = binaries(messages)
    if not all_binaries:
        sys.exit("no test binaries were built")
    process = [b for b in all_binaries if (b[0].name, b[1]) == PROCESS_TESTS]
    others = [b for b in all_binaries if b not in process]
    with concurrent.futures.ThreadPoolExecutor(len(process)) as first, \
            concurrent.futures.ThreadPoolExecutor(OTHER_BINARIES_AT_ONCE) as second:
        work = [first.submit(run, b, log_dir) for b in process] + [second.submit(run, b, log_dir) for b in others]
        results = [job.result() for job in work]
    skipped = sorted(set(pathlib.Path(skipped_file).read_text().splitlines()))
    names = {line.split(":")[0] for line in (s.replace("::", "\0") for s in skipped)}
    passed, failed = (sum(column) for column in zip(*results))
    if skipped:
        print(f"\nSkipped, because of this machine:")
        for line in skipped:
            print(f"  {line}")
    print(f"{passed - len(names)} passed, {failed} failed" + (f", {len(names)} skipped" if names else ""))
    sys.exit(1 if failed else 0)


main()
