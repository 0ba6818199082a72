"""Whether there is a compiler for CUDA programs."""

from tengen.gpu import program


def is_available() -> bool:
    try:
        program._library()
    except program.CompilerError:
        return False
    return True
