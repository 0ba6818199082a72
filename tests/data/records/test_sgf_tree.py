"""Games of SGF files as trees."""

import pytest

from tengen.data.records import sgf_tree
from tengen.data.records.records import MOST_VARIATIONS, RecordError
from tengen.data.records.sgf_tree import Node


def names(nodes: list[Node]) -> str:
    return "".join(next(iter(node)) for node in nodes)


def test_lines_share_the_nodes_before_their_branch() -> None:
    (tree,) = sgf_tree.trees("before (;A[](;B[];C[](;D[])(;E[]))(;F[])) after")
    assert names(tree.main_line) == "ABCD"
    assert [names(line) for line in tree.variations()] == ["ABCE", "AF"]


def test_what_follows_a_variation_in_the_same_bracket_is_left_out() -> None:
    (tree,) = sgf_tree.trees("(;A[](;B[]);C[](;D[];E[]))")
    assert names(tree.main_line) == "AB"
    assert [names(line) for line in tree.variations()] == ["ADE"]


def test_deep_and_wide_files_are_no_problem() -> None:
    (deep,) = sgf_tree.trees("(;B[aa]" * 50_000 + ")" * 50_000)
    assert len(deep.main_line) == 50_000
    (wide,) = sgf_tree.trees("(;B[aa]" + "(;W[bb])" * 50_000 + ")")
    assert len(list(wide.variations())) == MOST_VARIATIONS
    with pytest.raises(RecordError, match="cut short"):
        sgf_tree.trees("(;B[aa](;W[bb])")
