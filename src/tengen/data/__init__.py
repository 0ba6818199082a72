"""Training data: rows, in chunks on disk and in a buffer on the device, and game records.

    form = data.RowFormat.of(game, heads)
    store = data.Store(run / "selfplay", worker="a")
    with data.Writer() as writer:
        path = store.reserve("net-s0-d0")
        writer.put(partial(data.write_chunk, path, form, rows, data.GameIdentity.of(game), network="net-s0-d0"), path)

    with data.Loader(data.Folder(run / "selfplay"), form, data.GameIdentity.of(game), settings) as loader:
        batch = loader.get_next_batch("train")     # a tuple of arrays, see docs/loader.md

    rows = data.buffer.make(form, capacity)        # functions of a device buffer: append, sample, newest

Settings need no JAX, which is imported when something else is used. See docs/data.md.
"""

from tengen import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
