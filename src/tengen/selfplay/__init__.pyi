from tengen.config.settings.selfplay import SelfplaySettings as SelfplaySettings

from .finished import Finished as Finished
from .finished import on_host as on_host
from .playing import Actor as Actor
from .playing import Selfplay as Selfplay
