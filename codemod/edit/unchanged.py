"""The proof that an edit changed nothing but the calls it was about."""

from __future__ import annotations

import ast
from collections.abc import Collection


def is_unchanged_outside(old: ast.Module, new: ast.Module, edited: Collection[int], added: Collection[str]) -> bool:
    """Whether the trees are equal but for the nodes of `old` whose ids are `edited` and the import lines `added`."""
    lines = list(added)
    body = [statement for statement in new.body if not _is_taken(lines, statement)]
    if lines or len(body) != len(old.body):
        return False
    pairs: list[tuple[object, object]] = list(zip(old.body, body, strict=True))
    while pairs:
        before, after = pairs.pop()
        if id(before) in edited:
            continue
        below = _below(before, after)
        if below is None:
            return False
        pairs += below
    return True


def _below(before: object, after: object) -> list[tuple[object, object]] | None:
    """The pairs that must be equal for these two to be equal; None where they differ themselves."""
    if type(before) is not type(after):
        return None
    if isinstance(before, ast.AST):
        return [(getattr(before, name, None), getattr(after, name, None)) for name in before._fields]
    if isinstance(before, list) and isinstance(after, list):
        return list(zip(before, after, strict=True)) if len(before) == len(after) else None
    return [] if before == after else None


def _is_taken(lines: list[str], statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.ImportFrom) or ast.unparse(statement) not in lines:
        return False
    lines.remove(ast.unparse(statement))
    return True
