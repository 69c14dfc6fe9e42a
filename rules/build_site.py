"""The rule pages as a browsable site, made with MkDocs.

    python rules/build_site.py OUTPUT

Needs ``mkdocs-material`` (part of the extra ``test``). Links between pages are checked: a broken one stops the build.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from d9mlint import knowledge
from d9mlint.report import rule_page

CONFIG = """\
site_name: d9mlint rules
docs_dir: pages
site_dir: {output}
strict: true
theme:
  name: material
  font: false
  features: [navigation.sections, navigation.top, content.code.copy, search.highlight]
  palette:
    - media: "(prefers-color-scheme: light)"
      scheme: default
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
plugins: [search]
markdown_extensions:
  - tables
  - toc
  - pymdownx.highlight
  - pymdownx.superfences
validation:
  links:
    not_found: warn
"""
FAMILIES = {
    "general": "General",
    "seeds": "Seeds",
    "data": "Data",
    "settings": "Settings",
    "ops": "Ops",
    "distributed": "Distributed training",
    "checkpoints": "Checkpoints",
    "inference": "Inference",
    "portability": "Portability",
}


def index(pages: list[knowledge.RulePage]) -> str:
    """The start page: all rules by family."""
    lines = [
        "# d9mlint rules",
        "",
        "What makes two runs of a training program differ, and what to write instead.",
    ]
    for family in dict.fromkeys(page.family for page in pages):
        lines += [
            "",
            f"## {FAMILIES.get(family, family)}",
            "",
            "| rule | what is flagged | level | on |",
            "|---|---|---|---|",
        ]
        for page in (p for p in pages if p.family == family):
            on = "yes" if page.default else "no"
            link = f"[{page.code} {page.name}]({page.path})"
            lines.append(f"| {link} | {page.summary} | {page.severity} | {on} |")
    return "\n".join(lines) + "\n"


def navigation(pages: list[knowledge.RulePage]) -> str:
    """The ``nav`` of the configuration: the index, then the rules of each family in the sidebar."""
    lines = ["nav:", "  - Rules: index.md"]
    for family in dict.fromkeys(page.family for page in pages):
        lines.append(f"  - {FAMILIES.get(family, family)}:")
        lines += [f"    - {p.code} {p.name}: {p.path}" for p in pages if p.family == family]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Build the site; MkDocs' exit code."""
    if len(arguments) != 1:
        print(__doc__)
        return 2
    found = knowledge.load().rules
    pages = [found[code] for code in sorted(found)]
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "pages"
        folder.mkdir()
        (folder / "index.md").write_text(index(pages), encoding="utf-8")
        for page in pages:
            (folder / page.path).write_text(rule_page.markdown(page), encoding="utf-8")
        config = Path(work) / "mkdocs.yml"
        text = CONFIG.format(output=Path(arguments[0]).resolve()) + navigation(pages)
        config.write_text(text, encoding="utf-8")
        mkdocs = shutil.which("mkdocs", path=str(Path(sys.executable).parent)) or "mkdocs"
        return subprocess.run([mkdocs, "build", "--quiet", "-f", str(config)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
