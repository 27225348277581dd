"""Which torch a project asks for."""

from __future__ import annotations

import pytest

from codemod.sources.requirements import lowest_torch


@pytest.mark.parametrize(
    ("requirements", "lowest"),
    [
        ([], None),
        (["numpy>=2.13", "torchvision>=2.13", "torch-geometric>=2.13", "torch.extra>=2.13"], None),
        (["torch"], None),
        (["torch<3"], None),
        (["torch!=2.13"], None),
        (["torch @ https://example.org/torch-2.13.0.whl"], None),
        (["torch>=2.13"], "2.13"),
        (["Torch [opt-einsum] >= 2.13.1, < 3 ; python_version >= '3.99'"], "2.13.1"),
        (["torch==2.13.*"], "2.13"),
        (["torch~=2.9.1,!=2.10"], "2.9.1"),
        (["torch<3,>2.9,>=2.10"], "2.10"),
        (["torch>=2.13; sys_platform == 'linux'", "torch>=2.4; sys_platform == 'darwin'"], "2.4"),
        (["torch>=2.13", "torch"], None),
        (["torch>=2.9", "torch>=2.13"], "2.9"),
    ],
)
def test_the_lowest_that_is_asked_for(requirements: list[str], lowest: str | None) -> None:
    assert lowest_torch(requirements) == lowest
