#!/bin/sh
# Make .venv with the versions that were tested (constraints.txt). PYTHON=... chooses the interpreter.
set -eu
cd "$(dirname "$0")"

# A .venv is good if its Python is new enough, has pip, and lies where it was made (its scripts hold that path).
is_good() {
    [ -x .venv/bin/python ] && [ "$(cat .venv/.made-in 2>/dev/null)" = "$PWD" ] && new_enough .venv/bin/python &&
        .venv/bin/python -m pip --version >/dev/null 2>&1
}
new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        command -v "$PYTHON" >/dev/null && new_enough "$PYTHON" && echo "$PYTHON"
        return
    fi
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null && new_enough "$candidate"; then echo "$candidate"; return; fi
    done
}

if ! is_good; then
    python=$(find_python) || true
    if [ -z "$python" ]; then
        echo "Tengen needs Python 3.11 or newer; looked for: ${PYTHON:-python3, python3.14 ... python3.11}." >&2
        echo "Install one, or name it: make run PYTHON=/path/to/python3.12" >&2
        exit 1
    fi
    if [ ! -w . ]; then
        echo "Tengen sets itself up in .venv, but $PWD may not be written to; use a copy that may." >&2
        exit 1
    fi
    echo "== making .venv with $("$python" --version) =="
    rm -rf .venv
    if ! "$python" -m venv .venv; then
        echo "That Python could not make a virtual environment (see above)." >&2
        echo "On Debian and Ubuntu this usually helps: apt install python3-venv" >&2
        rm -rf .venv
        exit 1
    fi
    echo "$PWD" >.venv/.made-in
fi
extras=dev
if command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; then
    extras=dev,cuda
    driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 | cut -d. -f1)
    # CUDA 13 needs driver 580.
    case $driver in *[!0-9]* | "") ;; *) if [ "$driver" -lt 580 ]; then extras=dev,cuda12; fi ;; esac
fi
# Before it was called tengen-zero, this package was installed as tengen; both would own the same command.
.venv/bin/python -m pip uninstall --quiet --disable-pip-version-check --yes tengen >/dev/null 2>&1 || true
echo "== installing Tengen and what it needs (extras: $extras; some minutes the first time) =="
.venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[$extras]"
echo "== ready =="
