import io
import json
import re
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import report, result, table

STORED = Path(__file__).parent.parent / "data" / "result.json"


@pytest.fixture
def directory(tmp_path):
    shutil.copy(STORED, tmp_path / "result.json")
    return tmp_path


def rewrite(directory, change):
    whole = result.load(directory)
    change(whole)
    result.save(whole, directory)


def test_everything_is_drawn_from_the_result_alone(directory, capsys):
    assert report.main(directory) == 0
    made = {each.name for each in directory.iterdir()} - {"result.json"}
    pictures = {
        f"{name}.{kind}" for name in ("fct_cdf", "fct_p99", "queue", "goodput") for kind in ("png", "pdf")
    }
    assert made == pictures | {"report.html"}
    for name in pictures:
        start = (directory / name).read_bytes()[:4]
        assert start == (b"\x89PNG" if name.endswith("png") else b"%PDF")
    assert capsys.readouterr().out.splitlines()[0].endswith("report.html")


def test_the_page_needs_nothing_else(directory):
    report.main(directory)
    page = (directory / "report.html").read_text()
    sources = re.findall(r'(?:src|href)="([^"]{0,30})', page)
    assert len(sources) == 4
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert "http" not in page.replace("http-equiv", "")
    for words in ("droptail", "fairq", "mice FCT p99 [ms]", "125000", "buffer_bytes", "kernel"):
        assert words in page


def test_the_same_result_gives_the_same_files(directory):
    report.main(directory)
    first = {each.name: each.read_bytes() for each in directory.iterdir()}
    report.main(directory)
    assert {each.name: each.read_bytes() for each in directory.iterdir()} == first


def test_text_from_the_result_is_escaped(directory):
    def change(whole):
        whole["scenario"]["title"] = "<script>alert(1)</script>"
        whole["policies"].append({"policy": "iqm", "failed": "the <agent> ended"})

    rewrite(directory, change)
    report.main(directory)
    page = (directory / "report.html").read_text()
    assert "<script>" not in page
    assert "iqm failed: the &lt;agent&gt; ended" in page


@pytest.mark.parametrize(
    ("part", "missing"),
    [("mice", {"fct_cdf", "fct_p99"}), ("elephants", {"goodput"})],
)
def test_what_was_not_measured_is_left_out(directory, part, missing):
    def change(whole):
        for policy in whole["policies"]:
            policy[part] = None

    rewrite(directory, change)
    report.main(directory)
    drawn = {each.stem for each in directory.glob("*.png")}
    assert drawn == {"fct_cdf", "fct_p99", "queue", "goodput"} - missing


def test_a_damaged_result_is_one_clear_line(directory):
    rewrite(directory, lambda whole: whole["policies"][0].pop("queue"))
    with pytest.raises(UserError) as caught:
        report.main(directory)
    assert "is damaged" in caught.value.message
    with pytest.raises(UserError, match="there is no"):
        report.main(directory / "elsewhere")


def test_the_table_on_a_pipe_is_plain_columns():
    out = io.StringIO()
    table.show(json.loads(STORED.read_text()), Console(file=out))
    lines = out.getvalue().splitlines()
    assert lines[0].split() == ["droptail", "fairq"]
    assert any(line.startswith("mice FCT p99 [ms]") for line in lines)
    assert len({len(line) for line in lines if line.strip()}) == 1
    assert "\x1b" not in out.getvalue()


def test_the_table_on_a_terminal_has_the_same_figures():
    out = io.StringIO()
    whole = json.loads(STORED.read_text())
    table.show(whole, Console(file=out, force_terminal=True, width=120))
    for line in [*table.rows(whole), *table.ratio_rows(whole)]:
        for text in line:
            assert text in out.getvalue()
