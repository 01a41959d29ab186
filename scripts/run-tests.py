#!/usr/bin/env python3
"""Runs the test binaries that `cargo test --no-run --message-format=json` built, side by side, all of them even when one fails.

run-tests.py MESSAGES LOG_DIR SKIPPED: prints each binary's result, then the failed tests with their output, then the skipped
tests by name. The last line counts: "N passed, N failed, N skipped". Exits 1 when a test failed. Leaves out the tests of clusters.
A few failed tests are run once more, each by itself. What passes then is named as unsteady and counts as passed; FERRY_TEST_STRICT=1
counts it as failed.
run-tests.py MESSAGES LOG_DIR SKIPPED --cluster [FILTER]: the tests that need a Kubernetes cluster, and only these. Those in a
module whose name begins with "last_" run after all others, one after the other.
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
# These need a Kubernetes cluster.
CLUSTER_TESTS = ("ferry", "kube")
CLUSTER_THREADS = os.environ.get("FERRY_CLUSTER_TEST_THREADS", "2")
# The others work more than they wait, beside them.
OTHER_THREADS = "2"
OTHER_BINARIES_AT_ONCE = 1
# More failed tests than this are no accident, and are not tried again.
SECOND_TRIES = 4
RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.M)


def binaries(messages):
    found = {}
    for line in pathlib.Path(messages).read_text().splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            package = pathlib.Path(message["manifest_path"]).parent
            found[message["executable"]] = (package, message["target"]["name"])
    return [(package, target, executable) for executable, (package, target) in sorted(found.items())]


def name_of(binary):
    package, target, _ = binary
    return package.name, target


def environment(package):
    return dict(os.environ, CARGO_MANIFEST_DIR=str(package), CARGO_PKG_NAME=package.name)


def run(binary, log_dir, threads, tests=(), part=""):
    """Runs a binary, or only the named tests of it."""
    package, target, executable = binary
    log = log_dir / f"{package.name}-{target}{part}.log"
    env = environment(package)
    env.setdefault("RUST_TEST_THREADS", threads)
    command = [executable, "--test-threads", threads, "--exact", *tests] if tests else [executable]
    started = time.monotonic()
    with open(log, "wb") as out:
        status = subprocess.call(command, cwd=package, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    text = log.read_text(errors="replace")
    counts = RESULT.search(text)
    passed, failed = (int(counts[1]), int(counts[2])) if counts else (0, 1)
    if status != 0 and failed == 0:
        failed = 1
    seconds = time.monotonic() - started
    if passed or failed:
        print(f"{package.name} {target}{part}: {passed} passed, {failed} failed, {seconds:.0f} s", flush=True)
    if failed:
        at = text.find("\nfailures:\n")
        print(text[at:] if at >= 0 else text[-20000:], flush=True)
        print(f"The whole log: {log}", flush=True)
    # The last list of failures has the names only.
    names = re.findall(r"^    (\S+)$", text[text.rfind("\nfailures:\n"):], re.M) if counts and counts[2] != "0" else []
    return passed, failed, [(binary, name) for name in names]


def second_tries(failed_tests, log_dir):
    """Runs each of a few failed tests once more, with nothing beside it; returns the names of those that pass."""
    return [name for number, (binary, name) in enumerate(failed_tests)
            if run(binary, log_dir, "1", (name,), f"-again-{number}")[1] == 0]


def run_all(found, log_dir):
    process = [b for b in found if name_of(b) == PROCESS_TESTS]
    others = [b for b in found if name_of(b) not in (PROCESS_TESTS, CLUSTER_TESTS)]
    with concurrent.futures.ThreadPoolExecutor(len(process)) as first, \
            concurrent.futures.ThreadPoolExecutor(OTHER_BINARIES_AT_ONCE) as second:
        work = [first.submit(run, b, log_dir, PROCESS_THREADS) for b in process]
        work += [second.submit(run, b, log_dir, OTHER_THREADS) for b in others]
        return [job.result() for job in work]


def run_cluster(found, log_dir, test_filter):
    binary = next((b for b in found if name_of(b) == CLUSTER_TESTS), None)
    if not binary:
        sys.exit("the tests of clusters were not built")
    package, _, executable = binary
    listed = subprocess.run([executable, "--list", "--format", "terse", *test_filter], cwd=package, env=environment(package),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout
    tests = [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]
    if not tests:
        sys.exit(f"no test of a cluster is named like {' '.join(test_filter)}")
    last = [test for test in tests if any(module.startswith("last_") for module in test.split("::")[:-1])]
    results = []
    for names, threads, part in (([t for t in tests if t not in last], CLUSTER_THREADS, ""), (last, "1", "-last")):
        if names:
            results.append(run(binary, log_dir, threads, names, part))
    return results


def main():
    if sys.argv[2] == "--path":
        print(*(executable for package, target, executable in binaries(sys.argv[1]) if [package.name, target] == sys.argv[3:]))
        return
    messages, log_dir, skipped_file, *choice = sys.argv[1:]
    log_dir = pathlib.Path(log_dir)
    log_dir.mkdir(parents=True, exist_ok=True)
    pathlib.Path(skipped_file).write_text("")
    os.environ["FERRY_TEST_SKIPPED"] = str(pathlib.Path(skipped_file).resolve())
    found = binaries(messages)
    if not found:
        sys.exit("no test binaries were built")
    results = run_cluster(found, log_dir, choice[1:]) if choice[:1] == ["--cluster"] else run_all(found, log_dir)
    skipped = sorted(set(pathlib.Path(skipped_file).read_text().splitlines()))
    names = {line.split(":")[0] for line in (s.replace("::", "\0") for s in skipped)}
    passed, failed, failed_tests = (sum(column, start) for column, start in zip(zip(*results), (0, 0, [])))
    unsteady = []
    if failed == len(failed_tests) <= SECOND_TRIES and not os.environ.get("FERRY_TEST_STRICT"):
        unsteady = second_tries(failed_tests, log_dir)
        passed, failed = passed + len(unsteady), failed - len(unsteady)
    if unsteady:
        print("\nUnsteady, failed beside other tests and passed alone:")
        for name in unsteady:
            print(f"  {name}")
    if skipped:
        print(f"\nSkipped, because of this machine:")
        for line in skipped:
            print(f"  {line}")
    print(f"{passed - len(names)} passed, {failed} failed" + (f", {len(names)} skipped" if names else ""))
    sys.exit(1 if failed else 0)


main()
