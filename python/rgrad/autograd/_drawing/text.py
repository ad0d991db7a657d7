"""A picture as text: DOT for Graphviz, and Mermaid for pages in Markdown."""

from .picture import Box, Node, Picture
from .svg import COLOURS


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def to_dot(picture: Picture) -> str:
    """The picture in the language of Graphviz."""
    out = [
        "digraph graph_of_backward {",
        "  rankdir=TB;",
        f'  label="{_quoted(picture.heading)}"; labelloc=t; fontname="monospace"; fontsize=10;',
        '  node [shape=box, style="rounded,filled", fontname="monospace", fontsize=10];',
    ]
    number = 0

    def write(part: Node | Box, indent: str) -> None:
        nonlocal number
        if isinstance(part, Node):
            fill, line = COLOURS[part.kind]
            label = "\\n".join(_quoted(text) for text in [part.title, *part.lines])
            out.append(f'{indent}n{part.number} [label="{label}", fillcolor="{fill}", color="{line}"];')
            return
        number += 1
        style = "dashed" if part.count > 1 else "rounded"
        out.append(f"{indent}subgraph cluster_{number} {{")
        out.append(f'{indent}  label="{_quoted(part.title)}"; style="{style}"; color="#7a8592";')
        for child in part.children:
            write(child, indent + "  ")
        out.append(f"{indent}}}")

    for part in picture.root.children:
        write(part, "  ")
    out += [f"  n{a} -> n{b};" for a, b in picture.edges]
    return "\n".join([*out, "}"]) + "\n"


def _marked(text: str) -> str:
    """Text inside the quotes of Mermaid, which reads entities, and HTML."""
    for old, new in (("&", "#amp;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(old, new)
    return text


def to_mermaid(picture: Picture) -> str:
    """The picture as a flowchart of Mermaid."""
    out = ["flowchart TB"]
    number = 0

    def write(part: Node | Box, indent: str) -> None:
        nonlocal number
        if isinstance(part, Node):
            label = "<br/>".join(_marked(text) for text in [part.title, *part.lines])
            left, right = ("[", "]") if part.kind in ("op", "group") else ("([", "])")
            out.append(f'{indent}n{part.number}{left}"{label}"{right}:::{part.kind}')
            return
        number += 1
        out.append(f'{indent}subgraph box{number}["{_marked(part.title) or " "}"]')
        for child in part.children:
            write(child, indent + "  ")
        out.append(f"{indent}end")

    for part in picture.root.children:
        write(part, "  ")
    out += [f"  n{a} --> n{b}" for a, b in picture.edges]
    used = dict.fromkeys(node.kind for node in picture.nodes)
    for kind in used:
        fill, line = COLOURS[kind]
        out.append(f"  classDef {kind} fill:{fill},stroke:{line},color:#1b1f24")
    return "\n".join(out) + "\n"
