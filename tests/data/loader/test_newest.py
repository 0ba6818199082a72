"""Files that wait: the newest, and older ones when those are no good."""

from pathlib import Path

from tengen.data.loader.newest import Newest
from tengen.data.loader.sources import FoundFile


def test_older_files_are_passed_over_and_can_come_back() -> None:
    files = [FoundFile(Path(name), name) for name in "abcdef"]
    newest = Newest(2)
    newest.put(files[0])
    newest.put_all(files[1:])
    assert (newest.waiting, newest.capacity, newest.passed_over) == (2, 2, 4)
    assert newest.get() == files[4]
    newest.bring_back()
    newest.bring_back()
    assert newest.passed_over == 2
    assert [newest.get() for _ in range(3)] == [files[2]._replace(old=True), files[3]._replace(old=True), files[5]]
    for _ in range(3):
        newest.bring_back()  # there are only two more
    assert [newest.get().path.name for _ in range(2)] == ["a", "b"]
    assert (newest.poll(), newest.passed_over) == (None, 0)
