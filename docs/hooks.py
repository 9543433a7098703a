"""MkDocs hooks: the README is the home page, and links to files outside of docs/ work.

Such a link leads to the repository if repo_url is set, and is plain text otherwise. Images are copied into the site. A link to a
file that does not exist stays as it is, so that strict mode reports it.
"""

import os
import posixpath
import re

from mkdocs.structure.files import File

LINK = re.compile(r"(!?)\[([^\[\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_config(config):
    if config.repo_url:
        config.edit_uri = config.repo_url.rstrip("/") + "/edit/main/docs/"


def on_files(files, config):
    home = File.generated(config, "index.md", abs_src_path=os.path.join(os.path.dirname(config.config_file_path), "README.md"))
    home.edit_uri = "../README.md"
    files.append(home)
    return files


def on_page_markdown(markdown, page, config, files):
    root = os.path.dirname(config.config_file_path)
    is_home = page.file.src_uri == "index.md"
    folder = posixpath.dirname(page.file.src_uri)

    def rewrite(link):
        image, text, target, heading = link[1], link[2], link[3], link[4] or ""
        path = posixpath.normpath(target if is_home else posixpath.join("docs", folder, target))
        if ":" in target or not os.path.exists(os.path.join(root, path)):
            return link[0]
        if path.startswith("docs/"):
            return f"[{text}]({path.removeprefix('docs/')}{heading})" if is_home else link[0]
        if image:
            copy = "images/" + posixpath.basename(path)
            if files.get_file_from_path(copy) is None:
                files.append(File.generated(config, copy, abs_src_path=os.path.join(root, path)))
            return f"![{text}]({posixpath.relpath(copy, folder or '.')})"
        if path == "README.md":
            return f"[{text}]({posixpath.relpath('index.md', folder or '.')}{heading})"
        if config.repo_url:
            return f"[{text}]({config.repo_url.rstrip('/')}/blob/main/{path}{heading})"
        return text

    return LINK.sub(rewrite, markdown)
