"""What MkDocs calls while it builds the site: pages that come from the code, and links that leave docs/."""

import re
import sys
from pathlib import Path

from mkdocs.structure.files import File

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))

from tools.site.pages import generated_pages  # noqa: E402

# [text](../somewhere), as GitHub resolves it from docs/, or from a folder of examples/systems.
_LINK_OUT = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([^)#]+)\)")
_SYSTEM = re.compile(r"examples/systems/(\w+)/README\.md")
_PAGES = {"src/peaksight/gpus/cards.toml": "cards.md"}


def on_files(files, config):
    """Add the pages that nobody writes."""
    for name, text in generated_pages(REPOSITORY).items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown, page, **_):
    """Links to other pages stay; what is no page of the site is named by its path in the repository."""
    up = "../" * page.file.src_uri.count("/")
    return _LINK_OUT.sub(lambda link: _within_the_site(link[1], link[2], up), markdown)


def _within_the_site(text, path, up):
    if system := _SYSTEM.fullmatch(path):
        return f"[{text}]({up}systems/{system[1]}.md)"
    if path in _PAGES:
        return f"[{text}]({up}{_PAGES[path]})"
    if path.startswith("docs/"):
        return f"[{text}]({up}{path.removeprefix('docs/')})"
    return f"`{path}`" if text in path else f"{text} (`{path}`)"
