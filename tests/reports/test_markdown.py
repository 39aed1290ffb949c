"""Reports as Markdown, read as a reader's browser would: parsed, never by the look of the text."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from conformance.model import VERDICTS
from conformance.report import markdown, text
from conformance.report.causes import FAILURES


def tokens(page):
    parsed = MarkdownIt("commonmark").enable("table").parse(page)
    return [inner for token in parsed for inner in (token, *(token.children or ()))]


def raw_html(page):
    return [token.content for token in tokens(page) if token.type.startswith("html")]


def cells(page):
    """The rows of all tables, each as the text of its cells as a reader sees it."""
    rows = []
    for token in tokens(page):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows and token.level == 4:
            rows[-1].append("".join(inner.content for inner in token.children))
    return rows


def test_markdown_shows_hostile_messages_as_they_are(make):
    """Pipes, backticks, HTML and links of a message are text, in tables and in code blocks."""
    page = markdown.render(make.mixed(), published=False)
    assert raw_html(page) == []
    kinds = {token.type for token in tokens(page)}
    assert not kinds & {"link_open", "strong_open", "em_open", "image", "html_block"}
    shown = "a|b <i> `c` ```"
    assert ["gelu", "evaluate", "float64", "unsupported", shown, "gelu/none"] in cells(page)
    blocks = [token.content for token in tokens(page) if token.type == "fence"]
    told = [
        text.failure_text(each) + "\n" for each in make.mixed().verdicts if each.verdict in FAILURES
    ]
    assert sorted(blocks[1:]) == sorted(told)
    line = markdown.escape("<i>|`*_[x]\\\n&lt;\x1b")
    assert cells(f"| a |\n| --- |\n| {line} |\n")[1] == ["<i>|`*_[x]\\ &lt;\\x1b"]
    named = make.report(make.passing("a|`b`"), name="n|`m`")
    assert cells(markdown.render(named, published=True))[-1][-1] == "a|`b`"
    assert cells(markdown.render_summary([named]))[1][0] == "n|`m`"
    fenced = make.report(make.failing(got="1\n```\n<b>"))
    assert raw_html(markdown.render(fenced, published=True)) == []


def test_markdown_has_the_verdicts_by_operation(make):
    """Each operation, mode and dtype has a row with its counts and its worst share of the bound."""
    rows = cells(markdown.render(make.mixed(), published=True))
    head = rows.index(["operation", "mode", "dtype", *VERDICTS, "kind right", "worst", "case"])
    assert [" ".join(row) for row in rows[head + 1 : head + 6]] == [
        "layer_norm evaluate float64 1 1 0 0 0 0 0  6.6e+13 x layer-norm/two-features",
        "layer_norm evaluate float32 1 0 0 0 0 0 0  34 % layer-norm/rank",
        "block evaluate float64 0 2 0 0 0 0 0  7e+13 x block/more",
        "gelu evaluate float64 0 1 0 0 0 1 1  infinite gelu/far",
        "linear evaluate float64 3 1 1 1 1 0 0 2/3  ",
    ]


def test_markdown_lists_what_has_no_verdict(make):
    """Unsupported, no-verdict, not run and wrongly named rejections are all on the page."""
    page = markdown.render(make.mixed(), published=False)
    told = page[page.index("## Not judged") :]
    assert "The run was cut short: 5 of 20 planned were not run." in told
    assert [row[3:] for row in cells(told)[1:3]] == [
        ["unsupported", "a|b <i> `c` ```", "gelu/none"],
        ["no-verdict", "2 of 2 without bound", "gelu/wild"],
    ]
    assert cells(told)[4] == ["linear/rank [evaluate float64]", "rejected as a, not as b"]
    clean = markdown.render(make.report(make.passing()), published=False)
    assert clean.endswith("## Failures\n\nNone.\n\n## Not judged\n\n"
                          "Everything that was planned was judged.\n")  # fmt: skip


def test_published_markdown_leaves_out_what_churns(make):
    """A published page changes only if the backend, the specification or a verdict does."""
    full = markdown.render(make.mixed(), published=False)
    kept = markdown.render(make.mixed(), published=True)
    for word in ("kit-digest", "a-machine", "3.11.7"):
        assert word in full
        assert word not in kept
    for word in ("spec-digest", "numpy 2.4.6", "float64, float32", "0.1.0"):
        assert word in kept


def test_backends_stand_side_by_side(make):
    """One column a backend: passes of all, what else there is, the worst share of the bound."""
    both = make.passing("layer-norm/b", ratio=0.08)
    unbound = make.bare("layer-norm/x", "no-verdict", "")
    one = make.report(make.passing(), both, unbound, name="one")
    wrong = make.failing("layer-norm/affine", diagnosis=(make.SAMPLE,))
    two = make.report(both, wrong, make.passing("layer-norm/b", mode="vjp"), name="two")
    page = markdown.render_summary([one, two])
    rows = cells(page)
    assert rows[3:7] == [
        ["operation", "mode", "dtype", "one", "two"],
        ["layer_norm", "evaluate", "float64", "2/3, 1 no-verdict, worst 12 %",
         "1/2, worst 6.6e+13 x"],
        ["layer_norm", "vjp", "float64", "not run", "1/1, worst 12 %"],
        ["operation", "mode", "dtype", "one", "two", "cases"],
    ]  # fmt: skip
    assert rows[7:] == [["layer_norm", "evaluate", "float64", "pass", "fail", "layer-norm/affine"]]
    assert "### `one`\n\n2 pass, 0 fail, 1 no-verdict of 3\n\n### `two`\n\n" in page
    assert "1. fault sample-variance: 1 of 1 failures" in page
    assert "None: wherever two backends ran the same case" in markdown.render_summary([one, one])
    assert "different specifications" not in page
    other = msgspec.structs.replace(two, specification={"digest": "another"})
    assert "different specifications" in markdown.render_summary([one, other])


@settings(derandomize=True, deadline=None, max_examples=60)
@given(data=st.data())
def test_no_report_breaks_a_page(data, strategies):
    """Whatever a report says, its page has no HTML, and its tables keep their columns."""
    report = data.draw(strategies.reports)
    for page in (
        markdown.render(report, published=False),
        markdown.render_summary([report, report]),
    ):
        page.encode("utf-8")
        assert raw_html(page) == []
        lines = [line for line in cells(page) if line]
        assert {len(line) for line in lines} <= {2, 5, 6, 13}
