"""The reader takes YAML at its word: exact numbers, plain text, and one readable line a fault."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.errors import Problem, SpecificationError
from conformance.specification.reader import Document, show_path

repeatable = settings(derandomize=True, deadline=None, max_examples=60)


def read(text):
    return Document("spec/a.yaml", text).data


def refusal(text):
    """The one line that says why ``text`` is refused."""
    with pytest.raises(SpecificationError) as caught:
        read(text)
    assert len(caught.value.problems) == 1
    return str(caught.value)


# ------------------------------------------------------------------------------------- scalars


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("0", 0),
        ("-3", -3),
        ("+7", 7),
        ("012", 12),  # no octal: YAML 1.2
        ("-0", 0),
        ("0.1", Decimal("0.1")),
        ("1e-5", Decimal("0.00001")),
        ("1E5", Decimal("1E+5")),
        ("1e400", Decimal("1e400")),
        ("+1.E3", Decimal("1E+3")),
        (".5", Decimal("0.5")),
        ("-.5e-1", Decimal("-0.05")),
        ("1.", Decimal(1)),
        ("-0.0", Decimal("-0.0")),
        ("0.1000000000000000055511151231257827", Decimal("0.1000000000000000055511151231257827")),
    ],
)
def test_a_number_is_exactly_what_is_written(written, number):
    """An integer is an int, anything else a Decimal of every digit written, exponents included."""
    found = read(f"a: {written}")["a"]
    assert (type(found), str(found)) == (type(number), str(number))


PLAIN = """
on off yes no y n True TRUE false_ e5 . + -x ++1 1_000 0x1F 0o17 1e 1e+ .nan .inf -.Inf NaN
2020-01-01 12:30:45 1/3 1.2.3 = << Null NULL ١٢
"""


@pytest.mark.parametrize("text", PLAIN.split())
def test_what_only_older_yaml_reads_as_something_else_stays_text(text):
    """No word but true, false, null and ~ is more than text, and no date or infinity is a value."""
    assert read(f"a: {text}") == {"a": text}


def test_quotes_make_text():
    """A quoted or block scalar is text, whatever it looks like."""
    assert read("{a: '1e-5', b: \"true\", c: 'null'}") == {"a": "1e-5", "b": "true", "c": "null"}
    assert read("a: |\n  1e-5\n") == {"a": "1e-5\n"}


def test_flags_and_nothing():
    """true and false are flags; null, ~ and nothing at all are nothing."""
    assert read("[true, false, null, ~]") == [True, False, None, None]
    assert read("a:\nb: 1") == {"a": None, "b": 1}
    assert read("") is read("# only a comment\n") is None


def test_a_byte_order_mark_and_foreign_line_ends_are_no_part_of_the_data():
    """A byte order mark and carriage returns, which some editors leave, change nothing."""
    assert read("\ufeffa: 1\r\nb: [2,\r\n 3]\r\n") == {"a": 1, "b": [2, 3]}


# ------------------------------------------------------------------------------------ refusals


REFUSED = {
    "a:\n\tb: 1": (
        "2: found character that cannot start any token (is there a tab? indent with spaces)"
    ),
    "a: 1\nb: !!python/object/apply:os.system ['true']": (
        "2: the tag tag:yaml.org,2002:python/object/apply:os.system is not allowed: "
        "write plain YAML"
    ),
    "a: !mine 1": "1: the tag !mine is not allowed: write plain YAML",
    "a: 1\nb: 2\na: 3": "3: duplicate key 'a'",
    "a:\n- b: 1\n  c:\n    d: 1\n    d: 1": "5: duplicate key 'd'",
    "a: 1\n---\nb: 2": ("2: expected a single document in the stream: but found another document"),
    "a: 1\n2: 3": "2: the key 2 is not text: put it in quotes",
    "a: [1, 2\nb: 3": "2: while parsing a flow sequence: did not find expected ',' or ']'",
    "a: 1\nb: 'x": "2: while scanning a quoted scalar: found unexpected end of stream",
    "a: 1\n  b: 2": "2: mapping values are not allowed in this context",
}


@pytest.mark.parametrize(("text", "told"), REFUSED.items())
def test_a_refusal_is_one_line_with_file_line_and_reason(text, told):
    """What is not plain YAML is refused in one line that names the file, the line and the fault."""
    assert refusal(text) == f"spec/a.yaml:{told}"


def test_an_alias_is_refused_where_it_stands():
    """An alias, also in a merge, is refused at its own line and not at that of its anchor."""
    reason = "anchors and aliases are not allowed: write the value again"
    assert refusal("a: &x [1]\n\nb: *x") == f"spec/a.yaml:3: {reason}"
    assert refusal("a: &x {b: 1}\nc:\n  <<: *x") == f"spec/a.yaml:3: {reason}"


@pytest.mark.parametrize(
    "value",
    [
        *("!!str 1", "!!int 1", "!!float 1", "!!bool true", "!!bool maybe", "!!null x", "!!map 5"),
        *("!!seq [1]", "!!map {b: 1}", "!!set {b}", "!!binary aGk=", "!!timestamp 2020-01-01"),
        "!<tag:yaml.org,2002:number> x",
    ],
)
def test_no_tag_is_let_through(value):
    """A tag is refused even where the value is of its type: a fixture says nothing about types."""
    assert refusal(f"a: 1\nb: {value}").startswith("spec/a.yaml:2: the tag ")


@pytest.mark.parametrize("key", ["true", "null", "1.5", "[1, 2]", "{b: 1}", "~"])
def test_a_key_that_is_not_text_is_refused(key):
    """Every key is text; the message does not show it as another language would write it."""
    told = refusal(f"a: 1\n{key}: 3")
    assert told.startswith("spec/a.yaml:2: the key ")
    assert told.endswith(" is not text: put it in quotes")
    assert "Decimal" not in told


@pytest.mark.parametrize(
    "number", ["1e99999999999999999999", "-1e-99999999999999999999", 5000 * "9"]
)
def test_a_number_beyond_all_measure_is_refused(number):
    """A number too long or too large to be handled at all is a fault of the file."""
    assert refusal(f"a: 1\nb: {number}").startswith("spec/a.yaml:2: ")


@pytest.mark.parametrize("depth", [1_500, 5_000, 100_000])
@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ("{a: ", "}"), ("[", ""), ("- ", "")])
def test_deep_nesting_is_refused(depth, opened, closed):
    """A bomb of brackets, closed or not, is one readable line."""
    assert refusal(f"{opened * depth}1{closed * depth}").startswith("spec/a.yaml:1: ")


def test_nesting_that_only_python_can_t_follow_is_refused():
    """Where the parser goes along but the stack does not, the message is of the same kind."""
    reason = "spec/a.yaml:1: nested too deeply to be a fixture"
    assert refusal(f"a: {'[' * 900}1{']' * 900}") == reason
    assert refusal(f"{'{a: ' * 900}1{'}' * 900}") == reason


@pytest.mark.parametrize("code", [0, 7, 0x1B, 0x7F])
def test_a_control_character_is_refused_in_one_line(code):
    """What a terminal would obey is refused, and the message does not carry it."""
    told = refusal(f"a: 1\nb: x{chr(code)}y")
    assert told.startswith("spec/a.yaml:2: ")
    assert told.isprintable()


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    """Bytes that are no UTF-8 are refused with their position."""
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: 1 # caf\xe9\n")
    with pytest.raises(SpecificationError) as caught:
        Document.read(path, "spec/a.yaml")
    assert str(caught.value) == "spec/a.yaml: not UTF-8 text: invalid continuation byte at byte 10"


# ---------------------------------------------------------------------- round trips and lines

decimals = st.decimals(allow_nan=False, allow_infinity=False)
numbers = st.integers(-(10**30), 10**30) | decimals
nested = st.recursive(numbers, lambda inner: st.lists(inner, min_size=1), max_leaves=20)


def flow(value):
    return f"[{', '.join(map(flow, value))}]" if isinstance(value, list) else str(value)


def block(value, margin=""):
    if not isinstance(value, list):
        return f" {value}\n"
    return "\n" + "".join(f"{margin}-{block(item, margin + '  ')}" for item in value)


def exactly(value):
    """``value`` with every number as its own type and digits, so that equality is identity."""
    if isinstance(value, list):
        return [exactly(item) for item in value]
    written = str(value)
    whole = written.lstrip("-").isdigit()  # Decimal("7") is written as 7 is, and read as that
    return (int, str(int(written))) if whole else (type(value), written)


@repeatable
@given(nested)
def test_numbers_round_trip(value):
    """Any nested list of numbers comes back as it was written, in flow and in block style."""
    for text in (f"a: {flow(value)}", f"a:{block(value)}"):
        assert exactly(read(text)["a"]) == exactly(value)


@repeatable
@given(nested, st.integers(0, 3))
def test_a_line_number_points_at_the_line(value, above):
    """Every element of a document written a number a line is found at the line it stands on."""
    text = "# above\n" * above + f"a:{block(value)}"
    document, lines = Document("spec/a.yaml", text), text.split("\n")

    def look(item, path):
        if isinstance(item, list):
            for position, inner in enumerate(item):
                look(inner, (*path, position))
        else:
            assert lines[document.line(path) - 1].endswith(f" {item}")

    look(value, ("a",))


def test_a_path_that_does_not_exist_leads_to_the_deepest_part_that_does():
    """A missing key is reported at the mapping that lacks it, and the path names it."""
    text = "# head\ncases:\n- id: x\n  given:\n    x:\n    - 1\n    - 2\n"
    document = Document("spec/a.yaml", text)
    assert document.line(()) == 2
    given = ("cases", 0, "given")
    assert [document.line((*given, *more)) for more in (("x", 1), ("gamma",))] == [7, 4]
    gone = Problem("spec/a.yaml", 5, "cases[0].given.x[9]", "gone")
    assert document.problem((*given, "x", 9), "gone") == gone


def test_a_path_is_shown_as_it_would_be_typed():
    """Keys are joined by dots and positions stand in brackets; nothing is the whole document."""
    assert show_path(("cases", 3, "given", "x", 0, 1)) == "cases[3].given.x[0][1]"
    assert show_path((0, "id")) == "[0].id"
    assert show_path(()) == ""
