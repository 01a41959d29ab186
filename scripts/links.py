#!/usr/bin/env python3
"""Every link of a page to a file of the repository leads to one, and every link to a heading to a heading."""
import pathlib
import re
import subprocess
import sys


def anchors(page: pathlib.Path) -> set[str]:
    headings = re.findall(r"(?m)^#+ (.+)$", page.read_text())
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


wrong = []
for name in subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard", "*.md"], text=True).split("\n"):
    page = pathlib.Path(name)
    if not name or not page.exists():
        continue
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        to = page.parent / path if path else page
        if not to.exists():
            wrong.append(f"{name}: {link} leads nowhere")
        elif anchor and to.suffix == ".md" and anchor not in anchors(to):
            wrong.append(f"{name}: {path or name} has no heading #{anchor}")
print("\n".join(f"hygiene: {line}" for line in wrong), end="\n" if wrong else "")
sys.exit(1 if wrong else 0)
