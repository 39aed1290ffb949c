"""What a report says of the kit and the specification it was made with."""

import shutil

from conformance.layout import SPEC
from conformance.running.environment import specification


def test_a_digest_tells_files_of_one_name_apart(tmp_path):
    """It depends on what is where, and on no order in which a file system lists it."""
    found = set()
    for first, second in (("a", "b"), ("b", "a"), ("a", "a")):
        root = tmp_path / f"{first}{second}"
        for folder, text in (("one/x", first), ("two/x", second)):
            (root / folder).mkdir(parents=True)
            (root / folder / "same.yaml").write_text(text)
        found.add(specification(str(root))["digest"])
    assert len(found) == 3


def test_a_digest_is_that_of_the_contents_wherever_they_lie(tmp_path):
    """A copy in another folder is the same specification; a changed byte is another one."""
    copy = shutil.copytree(SPEC, tmp_path / "mine")
    assert specification(str(copy)) == specification(str(SPEC))
    with (copy / "errata.yaml").open("a", encoding="utf-8") as file:
        file.write("# more\n")
    assert specification(str(copy)) != specification(str(SPEC))
