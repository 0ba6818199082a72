"""Files that wait to be read: the newest ones of an endless source, since older ones would not stay in the pool."""

from collections import deque

from tengen.data.loader.channels import Channel
from tengen.data.loader.sources import FoundFile

_REMEMBERED = 100_000  # files that were passed over; there may be millions


class Newest(Channel[FoundFile]):
    """Passes over older files when newer ones come, so nobody waits for room. It can bring them back."""

    def __init__(self, size: int) -> None:
        super().__init__(size, "files")
        self.passed_over = 0
        self._size = size
        self._older: deque[FoundFile] = deque(maxlen=_REMEMBERED)  # newest last

    def bring_back(self) -> None:
        """Let the newest of those that were passed over be the next, because another was no good."""
        with self._changed:
            if self._older:
                self._items.appendleft(self._older.pop()._replace(old=True))
                self.passed_over -= 1
                self._changed.notify_all()

    def _has_room(self) -> bool:
        return True

    def _add(self, item: FoundFile) -> None:
        self._items.append(item)
        if len(self._items) > self._size:
            self._older.append(self._items.popleft())
            self.passed_over += 1
