from tengen.config.settings.search import SearchSettings
from tengen.nets.outputs import Evaluation as Evaluation

from . import dump as dump
from .result import SearchResult
from .result import summarise as summarise
from .roots import advance as advance
from .roots import begin as begin
from .roots import prune as prune
from .roots import restart as restart
from .simulation import Leaves as Leaves
from .simulation import expand as expand
from .simulation import finish as finish
from .simulation import run as run
from .simulation import run_from_host as run_from_host
from .simulation import select as select
from .simulation import simulate as simulate
from .simulation import unfinished as unfinished
from .tree import Tree as Tree
from .tree import bytes_needed as bytes_needed
from .tree import plant as plant

Result = SearchResult
Settings = SearchSettings
