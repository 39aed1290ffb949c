"""The command: what it prints, how it exits, what it imports, and that it never shows its stack."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import conformance
from conformance import __all__ as public
from conformance.backends.numpy import NumpyBackend
from conformance.command import entry
from conformance.command.showing import show as show_case
from conformance.errors import UsageError
from conformance.layout import BACKENDS, PACKAGE, ROOT, SPEC
from conformance.specification import load

#: A program that runs the command line and then says which modules it has loaded.
LOADED = """
import sys
sys.argv = ["conformance", *sys.argv[1:]]
from conformance.command.entry import main
try:
    main()
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Every test runs in an empty folder, with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs the command in this process: exit code, standard output, standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["conformance", *arguments])
        with pytest.raises(SystemExit) as caught:
            entry.main()
        return caught.value.code, *capsys.readouterr()

    return run


def process(*arguments, program=("-m", "conformance"), **environment):
    """Runs the command as people do, in a process of its own."""
    return subprocess.run(
        [sys.executable, *program, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


def mistake(result):
    """The lines told for a mistake of the user: exit code 2, nothing printed, no stack shown."""
    code, out, err = result
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert '  File "' not in err
    assert "defect of the kit" not in err
    return err.splitlines()


# ------------------------------------------------------------------------------- what is asked for


def test_an_adapter_may_import_what_lies_beside_it(command, tmp_path):
    """As a script may; and its digest covers that too."""
    there = tmp_path / "beside"
    there.mkdir()
    (there / "lies_beside.py").write_text("FACTOR = 1\n")
    adapter = there / "mine.py"
    adapter.write_text(
        "import lies_beside\n"
        "from conformance.backends.numpy import NumpyBackend\n"
        "class Mine(NumpyBackend):\n"
        "    def gelu(self, x):\n"
        "        return lies_beside.FACTOR * super().gelu(x)\n"
    )
    asked = ("run", str(adapter), "--select", "gelu/pair", "--out", str(tmp_path / "out"))
    assert command(*asked)[0] == 0
    (there / "lies_beside.py").write_text("FACTOR = 2\n")
    told = mistake(command(*asked, "--resume"))
    assert told[0].endswith("can't be gone on from: the adapter has changed since")
    assert command(*asked)[0] == 1


def test_more_children_than_there_is_work_for_are_refused(command):
    """They would be started all the same."""
    told = mistake(command("run", "numpy", "--jobs", "100000"))
    assert told[-1] == "Error: Invalid value for '--jobs': 100000 is not in the range 1<=x<=32."


def test_help_names_every_command_and_the_kinds_of_backend():
    """``--help`` and ``-h`` say what there is, in a process that has read nothing else."""
    for flag in ("--help", "-h"):
        told = process(flag)
        assert (told.returncode, told.stderr) == (0, "")
        assert all(f"\n  {name} " in told.stdout for name in entry.cli.commands)
        assert all(word in told.stdout for word in ("numpy", "torch", "jax", "fault:NAME"))


def test_help_of_run_names_the_exit_codes(command):
    """What a program may rely on is told where it is looked for, on lines of its own."""
    code, out, err = command("run", "--help")
    assert (code, err) == (0, "")
    assert "Exit code: 0 all that was judged passed   1 a fail or an error\n" in out
    assert "3 a crash or a timeout         4 nothing received a verdict\n" in out


def test_every_command_and_option_is_explained():
    """No command is without a sentence, no option without a word."""
    for name, found in entry.cli.commands.items():
        assert found.help, name
        options = [item for item in found.params if isinstance(item, click.Option)]
        assert all(option.help for option in options), name


def test_a_wrong_command_is_a_usage_error(command):
    """An unknown command, option or choice, and a missing argument, show the usage."""
    for arguments in (
        ("frobnicate",),
        ("run", "--frob"),
        ("run", "--dtype", "float16"),
        ("run", "--spec", "nowhere"),
        ("list",),
        ("list", "foo"),
        ("show",),
    ):
        told = mistake(command(*arguments))
        assert told[0].startswith("Usage: ")
        assert any(line.startswith("Error: ") for line in told)


def test_an_unknown_backend_is_told_with_near_names(command):
    """The near names come first, then every kind of name there is."""
    assert mistake(command("run", "nunpy")) == [
        "conformance: there is no backend 'nunpy'",
        ("  did you mean numpy? known: numpy, torch, jax, fault:NAME, FILE.py[:Class], "
        "package.module:Class"),
    ]  # fmt: skip
    assert mistake(command("run", "tensorflow"))[1].startswith("  known: numpy, torch, jax, ")


def test_an_unknown_fault_is_told_with_near_names(command):
    """A fault is a backend too; the list of them is one command away."""
    assert mistake(command("run", "fault:samplevariance")) == [
        "conformance: there is no fault 'samplevariance'",
        "  did you mean sample-variance? `conformance list faults` shows all",
    ]
    assert mistake(command("run", "fault:"))[1] == "  `conformance list faults` shows all"


@pytest.fixture
def without_libraries(tmp_path):
    """An environment in which neither PyTorch nor JAX is installed."""
    folder = tmp_path / "without"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import sys\nsys.modules['torch'] = sys.modules['jax'] = None\n"
    )
    return {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


def test_a_library_that_was_asked_for_and_is_missing_is_a_mistake(without_libraries):
    """Asked for and missing is an error with the line that installs it, never a skip."""
    told = process("run", "numpy", "torch", "--select", "gelu/pair", **without_libraries)
    assert mistake((told.returncode, told.stdout, told.stderr)) == [
        "conformance: the backend torch needs torch, which is not installed",
        f"  install it: python -m pip install -e '{ROOT}[torch]'",
    ]
    assert not Path("reports").exists()


def test_a_library_that_was_not_asked_for_is_named_and_left_out(without_libraries):
    """Without names, what is installed is judged, and what is not is told on standard error."""
    told = process("run", "--select", "gelu/pair", **without_libraries)
    assert told.returncode == 0
    assert told.stdout.startswith("numpy: 2 pass, 0 fail of 2\n")
    assert told.stderr.splitlines() == [
        f"{name} is not installed and not run; python -m pip install -e '{ROOT}[{name}]'"
        for name in ("torch", "jax")
    ]
    listed = process("list", "backends", **without_libraries)
    assert listed.stdout.splitlines()[1].split(None, 1) == [
        "torch", f"python -m pip install -e '{ROOT}[torch]'",
    ]  # fmt: skip


def test_a_selection_of_nothing_exits_with_4(command):
    """Nothing received a verdict, and the message says where ids are listed."""
    code, out, err = command("run", "numpy", "--select", "no-such-case")
    assert (code, out) == (4, "")
    assert err == (
        "conformance: no case matches no-such-case\n  `conformance list cases` shows the ids\n"
    )


def test_a_backend_that_is_named_twice_is_refused(command):
    """One child can't be asked by two."""
    told = mistake(command("run", "numpy", "numpy", "--select", "gelu/pair"))
    assert told == ["conformance: the backend numpy is named twice", "  name it once"]


def test_two_backends_of_one_name_are_refused(command, tmp_path):
    """Their reports would be one file."""
    (tmp_path / "other.py").write_text(
        "from conformance.backends.numpy import NumpyBackend\n"
        "class Other(NumpyBackend):\n    name = 'numpy'\n"
    )
    other = str(tmp_path / "other.py")
    told = mistake(command("run", "--in-process", "numpy", other, "--select", "gelu/pair"))
    assert told == [
        "conformance: two backends are called numpy",
        "  give one of them a class attribute `name`",
    ]


@pytest.mark.parametrize("out", ["taken", "taken/below"])
def test_a_folder_that_can_t_be_written_is_told_before_anything_is_judged(
    command, monkeypatch, tmp_path, out
):
    """A file in the way of the reports is found at once, not after an hour of judging."""
    (tmp_path / "taken").write_text("a file")
    monkeypatch.setattr(
        "conformance.judging.judge.verdict", lambda *_: pytest.fail("it was judged")
    )
    told = mistake(command("run", "--in-process", "numpy", "--select", "gelu/pair", "--out", out))
    assert told[0].startswith(f"conformance: reports can't be written to {out}: ")
    assert told[1].endswith(" with --out")
    assert (tmp_path / "taken").read_text() == "a file"


# -------------------------------------------------------------------------------- adapter files

ADAPTER = "import conformance\nclass Mine(conformance.Adapter):\n    def gelu(self, x):\n"
MINE = f"{ADAPTER}        return x\n"

#: What is in the file mine.py, what follows its name, and the lines that are told.
FILES = {
    "a syntax error": (
        "import conformance\nclass Mine(:\n",
        "",
        ["mine.py:2: syntax error: invalid syntax"],
    ),
    "no adapter": (
        "from conformance import Adapter\nx = Adapter\n",
        "",
        [
            "mine.py defines no adapter",
            "  define class MyBackend(conformance.Adapter) with a method an operation",
        ],
    ),
    "two adapters": (
        f"{MINE}class Other(Mine):\n    pass\n",
        "",
        ["mine.py defines 2 adapters: Mine, Other", "  name one, as in mine.py:Mine"],
    ),
    "an exception at import": (
        "import conformance\n\nraise RuntimeError('no device')\n",
        "",
        ["mine.py can't be loaded: RuntimeError: no device", "  raised at mine.py:3"],
    ),
    "a library that is missing": (
        "import conformance\nimport no_such_library\n",
        "",
        [
            "mine.py can't be loaded: ModuleNotFoundError: No module named 'no_such_library'",
            "  raised at mine.py:2",
        ],
    ),
    "an exception of the constructor": (
        f"{MINE}    def __init__(self):\n        raise ValueError('no licence')\n",
        "",
        ["mine.py can't be loaded: ValueError: no licence", "  raised at mine.py:6"],
    ),
    "another class": (MINE, ":Mien", ["mine.py has no class 'Mien'", "  did you mean Mine?"]),
    "a class that is no backend": (
        f"{MINE}class Tool:\n    pass\n",
        ":Tool",
        [
            "mine.py:Tool is no backend: it has no answer() or describe()",
            "  derive it from conformance.Adapter, or give it describe() and answer(question)",
        ],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_an_adapter_file_that_can_t_be_used_says_why(command, tmp_path, name):
    """The message names the file, the line and what to do next."""
    text, cls, lines = FILES[name]
    (tmp_path / "mine.py").write_text(text)
    told = mistake(command("run", f"mine.py{cls}", "--select", "gelu/pair", "--in-process"))
    told = [line.replace(f"{tmp_path}/", "") for line in told]
    assert told == [f"conformance: {lines[0]}", *lines[1:]]


def test_a_child_process_says_why_in_the_same_words(command, tmp_path):
    """What goes wrong behind the pipe is told on this side of it."""
    text, _, lines = FILES["an exception at import"]
    (tmp_path / "mine.py").write_text(text)
    told = mistake(command("run", "mine.py", "--select", "gelu/pair"))
    told = [line.replace(f"{tmp_path}/", "") for line in told]
    assert told == [f"conformance: {lines[0]}", *lines[1:]]


#: Files whose message is due with these words in it.
ODD_FILES = {
    "an exit at import": ("import sys\nsys.exit(0)\n", "mine.py"),
    "an exit of the constructor": (
        f"{MINE}    def __init__(self):\n        raise SystemExit\n", "mine.py",
    ),
    "bytes that are no text": (b"import conformance\n\0", "mine.py"),
    "another encoding": (b"import conformance\nx = '\xe9'\n", "mine.py"),
    "a constructor with a parameter": (
        f"{MINE}    def __init__(self, device):\n        pass\n", "'device'",
    ),
    "a description that raises": (
        f"{MINE}    def describe(self):\n        raise RuntimeError('no idea')\n",
        "RuntimeError: no idea",
    ),
    "a description that is none": (
        f"{MINE}    def describe(self):\n        return 5\n", "describe",
    ),
    "versions that are no text": (
        f"{MINE}    def versions(self):\n        return {{'a': object()}}\n", "mine",
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", [(), ("--in-process",)], ids=["child", "in process"])
@pytest.mark.parametrize(("text", "words"), ODD_FILES.values(), ids=ODD_FILES)
def test_no_adapter_file_ends_the_command_in_silence_or_with_a_stack(
    command, tmp_path, how, text, words
):
    """Whatever an adapter does while it is loaded, the exit code is 2 and the message readable."""
    (tmp_path / "mine.py").write_bytes(text if isinstance(text, bytes) else text.encode())
    told = "\n".join(mistake(command("run", "mine.py", "--select", "gelu/pair", *how)))
    assert words in told
    assert "None:None" not in told
    assert "harness" not in told


@pytest.mark.parametrize("name", ["gone.py", "gone.py:Mine", "no_such_package:Mine", ":Mine"])
def test_a_file_or_module_that_is_not_there_is_told(command, name):
    """The name that was given is in the message, not the inside of the import system."""
    told = mistake(command("run", name, "--select", "gelu/pair", "--in-process"))
    assert name.partition(":")[0] in told[0]
    assert "frozen" not in "".join(told)


def test_an_installed_distribution_can_name_a_backend(tmp_path):
    """An entry point of the group ``conformance.backends`` is a name like the bundled ones."""
    (tmp_path / "mine.py").write_text(MINE)
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[conformance.backends]\nmy-kernel = mine:Mine\n")
    path = f"{tmp_path}{os.pathsep}{ROOT}"
    told = process("run", "my-kernel", "--select", "gelu/pair", PYTHONPATH=path)
    assert (told.returncode, told.stderr) == (1, "")
    assert told.stdout.startswith("my-kernel: 0 pass, 2 fail of 2\n")
    near = process("run", "my-kernal", PYTHONPATH=path)
    assert "did you mean my-kernel?" in near.stderr


# ----------------------------------------------------------------------------- running and exiting


def exiting(tmp_path, body):
    """A file whose gelu does ``body``."""
    file = tmp_path / "mine.py"
    file.write_text(f"{ADAPTER}        {body}\n")
    return str(file)


@pytest.mark.parametrize(
    ("body", "code", "totals"),
    [
        ("return x", 1, "0 pass, 2 fail of 2"),
        ("return None", 1, "0 pass, 0 fail, 2 error of 2"),
        ("raise SystemExit", 3, "0 pass, 0 fail, 2 crash of 2"),
        ("return None if x.dtype == 'float32' else exit()", 1, "0 pass, 0 fail, 1 error, 1 crash"),
    ],
)
def test_the_exit_code_is_that_of_the_worst_verdict(command, tmp_path, body, code, totals):
    """1 for a fail or an error, before 3 for a crash."""
    found, out, err = command(
        "run", "--in-process", exiting(tmp_path, body), "--select", "gelu/pair"
    )
    assert (found, err) == (code, "")
    assert out.startswith(f"mine: {totals}")


def test_nothing_judged_exits_with_4(command, tmp_path):
    """An adapter without the operation passes nothing and fails nothing."""
    code, out, _ = command(
        "run", "--in-process", exiting(tmp_path, "return x"), "--select", "layer-norm/affine"
    )
    assert code == 4
    assert out.startswith("mine: 0 pass, 0 fail, 2 unsupported of 2\n")
    assert "nothing received a verdict" in out


def test_a_run_that_passes_writes_its_reports_and_exits_with_0(command, tmp_path):
    """One dtype of two cases; the last line says where the reports are."""
    code, out, err = command(
        "run", "numpy", "--select", "two-features", "--dtype", "float32", "--out", "here"
    )
    count = len(load().select(["two-features"]))
    assert (code, err) == (0, "")
    assert out.startswith(f"numpy: {count} pass, 0 fail of {count}\n")
    assert out.endswith("\nReports: here/README.md\n")
    report = json.loads((tmp_path / "here" / "numpy.json").read_text())
    assert {verdict["dtype"] for verdict in report["verdicts"]} == {"float32"}
    assert {path.suffix for path in (tmp_path / "here").glob("numpy.*")} >= {".json", ".md", ".xml"}


def test_a_fault_is_a_backend(command):
    """``fault:NAME`` fails as the mistake does, and is diagnosed as what it is."""
    code, out, _ = command("run", "fault:relu", "--select", "gelu/pair")
    assert code == 1
    assert "1. fault relu: 2 of 2 failures (gelu 2)" in out


def test_nothing_moves_or_shines_in_a_pipe():
    """No progress bar, no colour and no cursor movement where nobody looks."""
    told = process("run", "numpy", "fault:relu", "--select", "gelu/*", FORCE_COLOR="")
    assert told.returncode == 1
    assert told.stderr == ""
    assert "\x1b" not in told.stdout
    assert "\r" not in told.stdout


def test_a_reader_that_has_seen_enough_is_no_error():
    """``conformance list cases | head -1`` ends in silence, with 0."""
    running = subprocess.Popen(
        [sys.executable, "-u", "-m", "conformance", "list", "cases"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    running.stdout.close()
    assert running.stderr.read() == b""
    running.stderr.close()
    assert running.wait() == 0


def test_a_defect_of_the_kit_looks_like_no_verdict(command, monkeypatch):
    """What escapes is shown as it is, under an exit code that means nothing else."""

    def broken(*_):
        raise ZeroDivisionError("of our own")

    monkeypatch.setattr("conformance.command.listing.rows", broken)
    code, out, err = command("list", "cases")
    assert (code, out) == (70, "")
    assert "ZeroDivisionError: of our own" in err
    assert err.endswith("conformance: this is a defect of the kit, not of your backend.\n")


def test_an_interrupt_is_told_in_a_word(command, monkeypatch):
    """Ctrl-C is no traceback."""

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("conformance.command.listing.rows", interrupted)
    code, out, err = command("list", "cases")
    assert (code, out) == (130, "")
    assert err.strip() == "conformance: interrupted"


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
def test_what_can_t_be_printed_is_told_and_no_defect():
    """A full disk behind standard output is neither a verdict nor a defect of the kit."""
    for arguments in (("list", "cases"), ("run", "numpy", "--select", "gelu/pair")):
        with Path("/dev/full").open("w") as full:
            told = subprocess.run(
                [sys.executable, "-m", "conformance", *arguments],
                stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip
        assert told.returncode == 2
        assert told.stderr.startswith("conformance: what there is to say can't be written: ")


@pytest.mark.parametrize("closed", [(1,), (0, 1, 2)])
def test_closed_streams_change_no_verdict(closed):
    """A pipe to a child never gets the number of a standard stream."""
    close = "; ".join(f"os.close({number})" for number in closed)
    program = (
        f"import os, sys; {close}; os.execv(sys.executable, [sys.executable, '-m', 'conformance', "
        "'run', 'numpy', '--select', 'gelu/pair'])"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run([sys.executable, "-c", program], check=False, env=env).returncode == 0


# ----------------------------------------------------------------------------------- list and show


def test_lists_are_json_for_programs(command):
    """``--json`` prints one array of objects whose first field names the thing."""
    specification = load()
    names = {
        "cases": list(specification.cases),
        "clauses": list(specification.clauses),
        "backends": ["numpy", "torch", "jax"],
    }
    for what in ("cases", "operations", "clauses", "faults", "backends"):
        code, out, err = command("list", what, "--json")
        assert (code, err) == (0, "")
        rows = json.loads(out)
        assert rows
        assert len({tuple(row) for row in rows}) == 1
        if what in names:
            assert [next(iter(row.values())) for row in rows] == names[what]
    _, out, _ = command("list", "faults", "--json")
    assert all(row["fault"].startswith("fault:") for row in json.loads(out))
    _, out, _ = command("list", "operations", "--json")
    outputs = {row["operation"].partition("(")[0]: row["outputs"] for row in json.loads(out)}
    assert outputs["clip_gradients"] == "gradients, norm"
    _, out, _ = command("list", "cases", "--json", "--select", "gelu/pair")
    assert [row["id"] for row in json.loads(out)] == ["gelu/pair"]
    assert command("list", "cases", "--json", "--select", "no-such-case")[1] == "[]\n"


def test_lists_are_columns_for_people(command):
    """A line a thing, the columns aligned, nothing at the end of a line."""
    _, out, _ = command("list", "cases", "--select", "gelu/pair", "--select", "gelu/*-inputs")
    first, second = out.splitlines()
    assert first.index("evaluate") == second.index("evaluate")
    for what in ("operations", "clauses", "faults", "backends"):
        code, out, _ = command("list", what)
        assert code == 0
        assert all(line == line.rstrip() for line in out.splitlines())
        assert len(out.splitlines()) == len(json.loads(command("list", what, "--json")[1]))


def test_a_case_is_shown_with_what_it_asks_and_what_is_due(command):
    """Id, file, clauses in full, exact arguments, proven values and their bounds."""
    code, out, err = command("show", "gelu/pair")
    case = load().cases["gelu/pair"]
    assert (code, err) == (0, "")
    assert out.startswith("gelu/pair: ")
    assert f"  {case.file}:{case.line}\n" in out
    assert "  GELU-EXACT: " in out
    assert "  x = [-0.9999950000374996875, 0.9999950000374996875]\n" in out
    assert "    [0] -0.1586556705026610819249364  bound float64 " in out


def test_cases_of_every_kind_can_be_shown():
    """Rejections, undefined outputs, relations and gradients have their lines as well."""
    kinds = {
        (case.operation, case.mode, type(case.expectation), case.layout, case.free is None): name
        for name, case in load().cases.items()
    }
    for name in kinds.values():
        lines = list(show_case(name, SPEC))
        assert lines[0].startswith(f"{name}: ")
        assert all(line.isprintable() for line in lines)


def test_a_time_limit_is_a_number(command):
    """No range refuses NaN, and with it nothing would ever be too late."""
    told = mistake(command("run", "numpy", "--timeout", "nan"))
    assert told[-1] == "Error: Invalid value for '--timeout': 'nan' is no number of seconds."


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"backends": "numpy"}, "backends is a list, not the text 'numpy'"),
        ({"backends": ["numpy"], "select": "gelu/*"}, "select is a list, not the text 'gelu/*'"),
        ({"backends": None}, "backends is a list, not None\n  leave it out"),
        ({"backends": NumpyBackend()}, "backends is a list, not <"),
        ({"select": [3]}, "select has globs and parts of ids, not 3"),
        ({"dtypes": "float64"}, "dtypes is a list, not the text 'float64'"),
        ({"backends": [NumpyBackend]}, "NumpyBackend is a class, not a backend"),
    ],
)
def test_a_wrong_call_is_told_before_anything_runs(arguments, line):
    """Text where a list is due, and a class where an object is."""
    with pytest.raises(UsageError, match=re.escape(line)):
        conformance.run(**arguments)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"jobs": 0}, "jobs is a whole number from 1 on, not 0"),
        ({"jobs": 1.5}, "jobs is a whole number from 1 on, not 1.5"),
        ({"memory": 0}, "memory is a whole number from 1 on, not 0"),
        ({"timeout": "3"}, "timeout is seconds above zero, not '3'"),
        ({"timeout": float("nan")}, "timeout is seconds above zero, not nan"),
        ({"timeout": -1}, "timeout is seconds above zero, not -1"),
        ({"timeout": True}, "timeout is seconds above zero, not True"),
    ],
)
def test_options_are_what_the_command_would_take(options, line):
    """A limit that is none is refused where it is written."""
    with pytest.raises(conformance.ConformanceError, match=f"^{re.escape(line)}$"):
        conformance.Options(**options)


def test_a_path_is_a_backend(tmp_path):
    """A file may be given as the path it is."""
    file = tmp_path / "mine.py"
    file.write_text(
        "from conformance.backends.numpy import NumpyBackend\nclass Mine(NumpyBackend):\n  pass\n"
    )
    (report,) = conformance.run([file], select=["gelu/pair"])
    assert report.totals["pass"] == 2


def test_what_is_listed_may_come_one_by_one():
    """Generators are read once, whatever they are needed for."""
    (report,) = conformance.run(
        (each for each in [NumpyBackend()]),
        select=(each for each in ["gelu/pair"]),
        dtypes=(each for each in ["float32"]),
    )
    assert [(v.case, v.dtype, v.verdict) for v in report.verdicts] == [
        ("gelu/pair", "float32", "pass")
    ]


def test_an_unknown_case_is_told_with_near_ids(command):
    """Three near ids, or where all are listed when none is near."""
    told = mistake(command("show", "gelu/pear"))
    assert told[0] == "conformance: there is no case 'gelu/pear'"
    assert told[1].startswith("  near ids: gelu/pair, ")
    told = mistake(command("show", "zzzz"))
    assert told[0] == "conformance: there is no case 'zzzz'"
    assert not told[-1].rstrip().endswith(":")


def test_a_faulty_specification_is_told_a_line_a_fault(command, tmp_path):
    """Any command that reads a specification tells all its faults and exits with 2."""
    (tmp_path / "mine").mkdir()
    for arguments in (
        ("run", "numpy"),
        ("list", "cases"),
        ("show", "a/b"),
        ("check",),
        ("freeze",),
    ):
        told = mistake(command(*arguments, "--spec", "mine"))
        assert len(told) == 4
        assert told[0].startswith("conformance: mine/errata.yaml: can't be read: ")
        assert told[3].startswith("mine/retired.yaml: can't be read: ")


# ------------------------------------------------------------------------------ what is loaded

HEAVY = {"numpy", "torch", "jax", "flint"}


def loaded(*arguments, program=LOADED):
    """The modules a process has loaded when the command is done."""
    told = process(*arguments, program=("-c", program))
    assert told.returncode == 0, told.stderr
    return set(told.stderr.split())


@pytest.mark.parametrize(
    "program",
    ["import conformance", "import conformance.command.cli", "import conformance.model",
     "from conformance import Rejected, __version__"],
)  # fmt: skip
def test_importing_the_kit_loads_no_library(program):
    """The names of the kit are imported when they are first used."""
    found = loaded(program=f"import sys\n{program}\nprint(*sys.modules, file=sys.stderr)")
    assert "conformance" in found
    assert not found & HEAVY


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("run", "--help"),
        ("list", "cases"),
        ("list", "backends"),
        ("list", "clauses", "--json"),
    ],
)
def test_help_and_lists_load_no_library(arguments):
    """Whoever only looks around waits for nothing."""
    for _ in range(2 if "list" in arguments else 1):  # as it is read, and as it is kept
        found = loaded(*arguments)
        assert "conformance.command.cli" in found
        assert not found & HEAVY


def test_a_run_that_passes_loads_nothing_of_the_truth():
    """Neither the oracle nor the faults, and no framework that was not asked for."""
    for how in ((), ("--in-process",)):
        found = loaded("run", "numpy", "--select", "two-features", *how)
        assert "conformance.judging.judge" in found
        assert not found & {"flint", "torch", "jax", "rich"}
        hidden = ("conformance.truth", "conformance.diagnosis")
        assert not any(name.startswith(hidden) for name in found)


def test_reaching_a_backend_loads_nothing_that_knows_the_answer():
    """The rooms on both sides of a question know nothing of each other."""
    program = "import sys\nimport {}\nprint(*sys.modules, file=sys.stderr)"
    found = loaded(program=program.format("conformance.harness.load, conformance.harness.ask"))
    hidden = ("conformance.truth", "conformance.frozen", "conformance.judging")
    assert not any(name.startswith(hidden) for name in found)
    found = loaded(program=program.format("conformance.judging.judge"))
    assert not any(name.startswith(("conformance.truth", "conformance.harness")) for name in found)
    found = loaded(
        program=program.format(
            "conformance.truth.checking.freeze, conformance.truth.checking.check"
        )
    )
    assert not any(name.startswith("conformance.harness") for name in found)


# --------------------------------------------------------------------------- what may import what


def imports(path):
    """Every (module, name) that a file imports, wherever in it; the name is "" for a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 or path.parent == BACKENDS, f"{path}: a relative import"
            home = "." * node.level
            yield from ((f"{home}{node.module}", alias.name) for alias in node.names)


def modules(folder):
    """Every (file, imported module) of a folder or file; ``from a import b`` may be a.b too."""
    paths = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
    assert paths
    for path in paths:
        for module, name in imports(path):
            yield path, module
            yield path, f"{module}.{name}"


def reaches(folder, *rooms):
    """The files of ``folder`` that import from one of ``rooms``."""
    return {
        path.name
        for path, module in modules(folder)
        if any(module == room or module.startswith(f"{room}.") for room in rooms)
    }


def test_truth_and_harness_never_import_each_other():
    """Whatever knows the answer can't be reached from where the questions are asked."""
    truth, harness = "conformance.truth", "conformance.harness"
    assert not reaches(PACKAGE / "truth", harness)
    assert not reaches(PACKAGE / "diagnosis", harness)
    hidden = (truth, "conformance.frozen", "conformance.judging", "conformance.diagnosis")
    assert not reaches(PACKAGE / "harness", *hidden)
    assert reaches(PACKAGE / "truth", truth)  # the look itself sees something


def test_the_judge_imports_neither():
    """It is given truth and answers; the relations it measures are no different."""
    for name in ("judging", "frozen", "questions"):
        assert not reaches(PACKAGE / name, "conformance.truth", "conformance.harness")


def test_nothing_in_the_kit_imports_an_adapter():
    """Adapters are imported by name, when a run asks for them."""
    assert not reaches(PACKAGE, "backends", "conformance.backends", "torch", "jax")


def test_the_specification_and_the_nouns_need_no_numpy():
    """What lists and help read is free of every library but the decoders."""
    allowed = {"conformance", "msgspec", "yaml", "platformdirs", *sys.stdlib_module_names}
    edge = (PACKAGE / "command" / name for name in ("cli.py", "entry.py", "options.py"))
    for folder in (PACKAGE / "specification", PACKAGE / "errors.py", *edge):
        found = {module.partition(".")[0] for _, module in modules(folder)}
        assert found <= allowed | {"click"}


LIBRARIES = ("numpy", "torch", "jax")


@pytest.mark.parametrize("path", sorted(BACKENDS.glob("*.py")), ids=lambda path: path.stem)
def test_an_adapter_imports_public_names_and_its_own_library(path):
    """An adapter is what any author could write: nothing private of the kit, nothing of another
    framework. Its parts lie beside it, named after the library; those of none are shared."""
    library = path.stem.removeprefix("_").partition("_")[0]
    others = {f"._{name}" for name in LIBRARIES if name != library}
    allowed = {"conformance", "numpy", *({library} & {*LIBRARIES}), *sys.stdlib_module_names}
    for module, name in imports(path):
        if module.startswith("."):
            assert not module.startswith(tuple(others))
            assert (path.parent / f"{module.removeprefix('.')}.py").exists()
            continue
        assert module.partition(".")[0] in allowed
        if module.partition(".")[0] == "conformance":
            assert module == "conformance"
            assert name in public


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "numpy", "--select", "gelu/pair", "--select", "gleu/pair"), "matches gleu/pair"),
        (("run", "numpy", "--select", ""), "an empty pattern"),
        (("list", "faults", "--select", "gelu"), "faults are not selected by pattern"),
        (("explain", "gelu/pair", "--dtype", "float32"), "--dtype is of the reproducer alone"),
        (("explain", "gelu/pair", "--reproducer", "--backend", "numpy"), "has no backend in it"),
        (("run", "numpy", "--in-process", "--memory", "900"), "--memory is for children"),
        (("run", "numpy", "--in-process", "--timeout", "5"), "--timeout is for children"),
        (("run", "numpy", "--in-process", "--jobs", "2"), "--jobs is for children"),
        (("run", "no.such:Thing"), "there is no module 'no'"),
        (("run", "json.nosuch:Thing"), "there is no module 'json.nosuch'"),
    ],
)
def test_what_would_be_passed_over_in_silence_is_a_mistake(command, arguments, told):
    """A pattern that matches nothing, an option that has no effect, a module that isn't there."""
    result = command(*arguments)
    mistake(result)
    assert told in result[2]


def test_a_list_of_no_cases_exits_with_4(command):
    """As a run of no cases does."""
    code, out, err = command("list", "cases", "--select", "gleu")
    assert (code, out) == (4, "")
    assert "no case matches gleu" in err
