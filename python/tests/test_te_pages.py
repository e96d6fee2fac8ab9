"""The guide for those who come from TVM, and the tutorial, run as they are printed."""

import pathlib
import re
import runpy

ROOT = pathlib.Path(__file__).parents[2]


def test_the_code_of_the_guide_runs(capsys):
    page = (ROOT / "docs" / "migrating-from-te.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 4
    names = {}
    for block in blocks:
        exec(compile(block, "migrating-from-te.md", "exec"), names)
    assert "for k_outer, k_inner in T.grid((m + 15) // 16, 16):" in capsys.readouterr().out


def test_the_tutorial_runs_and_prints_its_listings(capsys):
    runpy.run_path(str(ROOT / "examples" / "python" / "tutorial.py"))
    printed = capsys.readouterr().out
    assert printed.endswith("every result agrees with NumPy's\n") and "__shfl_down_sync" in printed
    frozen = (ROOT / "tests" / "files" / "tutorial.txt").read_text()
    for number in (1, 2, 4, 5):
        listing = frozen.split(f"== listing {number}\n")[1].split("== listing")[0]
        assert listing in printed
