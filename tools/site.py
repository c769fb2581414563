"""A hook of MkDocs: what the pages need to be a site as well as files that GitHub shows.

- Links that leave docs/ (to an example, a benchmark, the changelog) lead to a copy in the site.
- Anchors are GitHub's, so that one link works in both places.
- A pattern in the nav stands for the pages that match it.
- A built page may load nothing from another host: the build fails if one does.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "internals/contributing.md",
    "build/reference/api-resources.md": "reference/api-resources.md",
    "build/reference/help.md": "reference/help.md",
}
"""Files of the repository that the site has as pages, and where."""
COPIES = "files"
"""Where the site has the other files that pages link to."""
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)")
"""Of a page or of a picture."""
LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=\"(?:https?:)?//[^\"]*\"")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.mdx_configs["toc"] = {"permalink": True, "slugify": slugify(case="lower")}
    config.nav = _expanded(config.nav or [], Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the repository's root, and everything outside docs/ that a page links to."""
    for source, uri in PAGES.items():
        files.append(_copied(config, uri, ROOT / source))
    seen = set()
    waiting = [file.src_uri for file in files.documentation_pages()]
    while waiting:
        uri = waiting.pop()
        seen.add(uri)
        for target in _targets(_source(uri)):
            there = _in_site(target)
            if there in seen or files.get_file_from_path(there) or not (ROOT / target).is_file():
                continue
            files.append(_copied(config, there, ROOT / target))
            if there.endswith(".md"):
                waiting.append(there)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    del config, files
    uri = page.file.src_uri
    kept: list[str] = []

    def put_aside(block: re.Match[str]) -> str:
        kept.append(block[0])
        return f"\0{len(kept) - 1}\0"

    def rewritten(link: re.Match[str]) -> str:
        label, target = link[1], link[2]
        if re.match(r"[a-z]+:|#", target):
            return link[0]
        path, mark, anchor = target.partition("#")
        leads_to = posixpath.normpath(posixpath.join(posixpath.dirname(_written_as(uri)), path))
        if (ROOT / leads_to).is_dir():
            index = _in_site(f"{leads_to}/index.md")
            if not (ROOT / leads_to / "index.md").is_file():
                return label.strip("[]")
            return f"{label}({posixpath.relpath(index, posixpath.dirname(uri) or '.')})"
        return f"{label}({posixpath.relpath(_in_site(leads_to), posixpath.dirname(uri) or '.')}{mark}{anchor})"

    text = LINK.sub(rewritten, FENCED.sub(put_aside, markdown))
    return re.sub(r"\0(\d+)\0", lambda at: kept[int(at[1])], text)


def on_post_build(config: MkDocsConfig) -> None:
    site = Path(config.site_dir)
    loaded = [
        f"{path.relative_to(site)}: {found[0]}"
        for path in sorted(site.rglob("*.html"))
        for found in LOADED.finditer(path.read_text())
    ]
    if loaded:
        raise PluginError("a page would load something from another host:\n" + "\n".join(loaded))


def _expanded(nav: list[Any], folder: Path) -> list[Any]:
    expanded: list[Any] = []
    for item in nav:
        if isinstance(item, dict):
            expanded.append(
                {title: _expanded(of, folder) if isinstance(of, list) else of for title, of in item.items()}
            )
        elif "*" in item:
            expanded.extend(sorted(str(path.relative_to(folder)) for path in folder.glob(item)))
        else:
            expanded.append(item)
    return expanded


def _source(uri: str) -> str:
    """Which file of the repository a page of the site is."""
    for source, there in PAGES.items():
        if uri == there:
            return source
    return uri.removeprefix(f"{COPIES}/") if uri.startswith(f"{COPIES}/") else f"docs/{uri}"


def _written_as(uri: str) -> str:
    """Where the links of a page start: those of a page that was generated, at its place in the site."""
    source = _source(uri)
    return f"docs/{uri}" if source.startswith("build/") else source


def _in_site(path: str) -> str:
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return PAGES.get(path, f"{COPIES}/{path}")


def _targets(source: str) -> list[str]:
    if source.startswith("build/"):
        return []
    text = FENCED.sub("", (ROOT / source).read_text())
    links = [link[2] for link in LINK.finditer(text)]
    return [
        posixpath.normpath(posixpath.join(posixpath.dirname(source), target.partition("#")[0]))
        for target in links
        if not re.match(r"[a-z]+:|#", target)
    ]


def _copied(config: MkDocsConfig, uri: str, path: Path) -> File:
    return File.generated(config, uri, abs_src_path=str(path))
