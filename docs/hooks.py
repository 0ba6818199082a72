"""A hook of mkdocs, for `make docs`: adds README, changelog, examples, and a page for each package of the API."""

import ast
import re
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tengen"
EXAMPLES = sorted(
    path
    for path in (ROOT / "examples").rglob("*")
    if path.suffix in (".py", ".yaml", ".toml", ".sh") and path.stem != "__init__"
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fills the two parts of the navigation that are made here."""
    made = {"Examples": [f"examples/{name}.md" for name in map(_example, EXAMPLES)]}
    made["Python API"] = ["api/tengen.md", *(f"api/{name}.md" for name in _packages())]
    config.nav = [{title: made.get(title, pages) for title, pages in part.items()} for part in config.nav or []]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are no files in docs/."""

    def add(path: str, text: str) -> None:
        files.append(File.generated(config, path, content=text))

    add(
        "index.md",
        (ROOT / "README.md").read_text("utf-8").replace("(docs/", "(").replace("(CHANGELOG.md)", "(changes.md)"),
    )
    add("changes.md", (ROOT / "CHANGELOG.md").read_text("utf-8").replace("(docs/", "("))
    for path in EXAMPLES:
        language = path.suffix[1:].replace("py", "python")
        add(f"examples/{_example(path)}.md", f"# {_example(path)}\n\n```{language}\n{path.read_text('utf-8')}```\n")
    add("api/tengen.md", _api("tengen", PACKAGE))
    for name in _packages():
        add(f"api/{name}.md", _api(f"tengen.{name}", PACKAGE / name))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Lets links to examples lead to their pages."""
    return re.sub(r"\]\((?:\.\./)?((?:\.\./)*examples/[\w/.]+\.(?:py|yaml|toml|sh))\)", r"](\1.md)", markdown)


def _example(path: Path) -> str:
    return path.relative_to(ROOT / "examples").as_posix()


def _packages() -> list[str]:
    """The packages that `import tengen` offers."""
    return [name for name, origin in _public(PACKAGE).items() if origin == f"tengen.{name}"]


def _api(package: str, folder: Path) -> str:
    """One section for each public name of a package, taken from where it is defined."""
    sections = [f"# {package}", f"::: {package}\n    options: {{members: false, show_root_heading: false}}"]
    for name, origin in _public(folder).items():
        home = ".".join(origin.split(".")[:2])
        if origin == home and package == "tengen":
            sections.append(f"- [{origin}]({name}.md)")
        elif home != package and home[len("tengen.") :] in _packages():  # has its section there
            sections.append(f"## {package}.{name} {{ #{package}.{name} }}\n\nThe same as [{origin}][].")
        else:
            sections.append(f"::: {origin}\n    options: {{heading: {package}.{name}, toc_label: {name}}}")
    return "\n\n".join(sections) + "\n"


def _public(folder: Path) -> dict[str, str]:
    """The public names of a package, each with the full name of what it stands for; from the stub if there is one."""
    file = next(path for path in (folder / "__init__.pyi", folder / "__init__.py") if path.exists())
    package = ".".join(folder.relative_to(PACKAGE.parent).parts)
    found: dict[str, str] = {}
    listed: set[str] | None = None
    for node in ast.parse(file.read_text("utf-8")).body:
        match node:
            case ast.ImportFrom(module=module, names=names, level=level):
                origin = ".".join(filter(None, (package if level else "", module)))
                found |= {alias.asname or alias.name: f"{origin}.{alias.name}" for alias in names}
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                listed = set(ast.literal_eval(value))
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)) if other in found:
                found[name] = found.pop(other)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found[name] = f"{package}.{name}"
    return {name: origin for name, origin in sorted(found.items()) if listed is None or name in listed}


class Comments(griffe.Extension):
    """The comment behind a field is its documentation."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        if attr.docstring or attr.lineno is None or not attr.parent or not attr.parent.is_class:
            return
        line = attr.lines_collection[attr.filepath][attr.lineno - 1]
        if explained := re.search(r"  # (?!fmt:|type:|noqa)(.+)$", line):
            attr.docstring = griffe.Docstring(explained[1], parent=attr)
