"""Settings and records declared once: type, allowed values and a one-line explanation, side by side.

    @dataclass(frozen=True)
    class GoOptions:
        size: int = setting(9, "points along one side", low=2, high=19)

The same declaration serves the options of a game (`from_options`: defaults apply), a section of the configuration
(`check`: every key must be there), and files and messages in JSON (`from_json`, `read_json`). All of them find every
problem, not only the first, and say what was expected.

Supported annotations: int, float, int | float, bool, str, Literal[...], T | None, tuple[T, ...], tuple[A, B],
dict[str, T], Any, dataclasses declared in the same way, and a word instead of a number: int | Literal["auto"].
Limits apply to each item of a tuple.
A class may define `check_together(self) -> Iterable[tuple[str, str]]`, giving (key, message) for rules across its
settings; a key inside one of its sections is `section.key`. It is called only when each setting is valid by itself. A
class attribute `moved` maps keys of earlier versions to `section.key`, where those settings are now; `retired` maps
those of settings that were removed to `Retired`, so that files which have them can be read. A classmethod
`key_names(source)` gives the keys (`KeyNames`) of settings that files do not call by the names of their fields.
"""

from tengen.schema.checking import Problem as Problem
from tengen.schema.checking import check as check
from tengen.schema.checking import from_data as from_data
from tengen.schema.checking import from_json as from_json
from tengen.schema.checking import from_options as from_options
from tengen.schema.checking import read_json as read_json
from tengen.schema.checking import write_json as write_json
from tengen.schema.declaration import REQUIRED as REQUIRED
from tengen.schema.declaration import Declared as Declared
from tengen.schema.declaration import KeyNames as KeyNames
from tengen.schema.declaration import Path as Path
from tengen.schema.declaration import Retired as Retired
from tengen.schema.declaration import Rule as Rule
from tengen.schema.declaration import before as before
from tengen.schema.declaration import describe as describe
from tengen.schema.declaration import dotted as dotted
from tengen.schema.declaration import flat as flat
from tengen.schema.declaration import in_quotes as in_quotes
from tengen.schema.declaration import key_names as key_names
from tengen.schema.declaration import leaves as leaves
from tengen.schema.declaration import quote as quote
from tengen.schema.declaration import retired as retired
from tengen.schema.declaration import setting as setting
from tengen.schema.declaration import to_dict as to_dict
from tengen.schema.declaration import unknown as unknown
from tengen.schema.declaration import values as values
from tengen.schema.declaration import variant as variant
