"""Only where all its operands may have four dims has attention a layout that a backend chooses."""

from __future__ import annotations

from tests.layout.verdicts import check


def test_three_dims_of_one_operand_are_enough() -> None:
    check(
        """
def f(x, q, project):
    b, n, c = x.shape
    v = x.new_zeros(b * 4, n, c)
    y = F.scaled_dot_product_attention(project(q), v, v)
    y = y.view(b, 4, n, -1)  # safe
    return y.transpose(1, 2).view(b, n, -1)  # failing
"""
    )


def test_four_dims_or_any_number_are_up_to_the_backend() -> None:
    check(
        """
def f(x, project):
    q = project(x)
    y = F.scaled_dot_product_attention(q, q, q)
    return y.view(x.shape[0], -1)  # layout-dependent

def g(x):
    q = x.new_zeros(2, 4, 6, 8)
    y = F.scaled_dot_product_attention(q, q, q)
    return y.view(8, -1)  # layout-dependent
"""
    )
