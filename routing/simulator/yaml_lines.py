"""Where each part of a YAML text stands, so that a refusal can name a line."""

from collections.abc import Mapping

import yaml


def lines_of(text: bytes) -> dict[str, int]:
    """Line of each JSON pointer, from 1, of a text that `routing.llmd.yaml_text` has let in."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    found: dict[str, int] = {}
    stack = [] if root is None else [("", root)]
    while stack:
        pointer, node = stack.pop()
        found.setdefault(pointer, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                below = f"{pointer}/{key.value}"
                found.setdefault(below, key.start_mark.line + 1)
                stack.append((below, value))
        elif isinstance(node, yaml.SequenceNode):
            stack.extend((f"{pointer}/{place}", child) for place, child in enumerate(node.value))
    return found


def line_of(pointer: str, lines: Mapping[str, int]) -> int | None:
    """Of a pointer, or of the nearest part around it that stands in the text."""
    while pointer not in lines and pointer:
        pointer = pointer.rpartition("/")[0]
    return lines.get(pointer)
