"""Whether there is a compiler for CUDA programs."""

from tengen.gpu import nvrtc


def is_available() -> bool:
    try:
        nvrtc._library()
    except nvrtc.CompilerError:
        return False
    return True
