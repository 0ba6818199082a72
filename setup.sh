#!/bin/sh
# Make .venv with the versions that were tested (constraints.txt). PYTHON=... chooses the interpreter.
set -eu
cd "$(dirname "$0")"

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

python=""
for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if command -v "$candidate" >/dev/null && new_enough "$candidate"; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
    echo "Tengen needs Python 3.11 or newer; looked for: ${PYTHON:-python3, python3.14 ... python3.11}." >&2
    echo "Install one, or name it: make run PYTHON=/path/to/python3.12" >&2
    exit 1
fi

if [ ! -x .venv/bin/python ] || ! .venv/bin/python -c '' 2>/dev/null; then
    echo "== making .venv with $("$python" --version) =="
    rm -rf .venv
    if ! "$python" -m venv .venv; then
        echo "That Python cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv" >&2
        rm -rf .venv
        exit 1
    fi
fi
extras=dev
if command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; then extras=dev,cuda; fi
echo "== installing Tengen and what it needs (extras: $extras; some minutes the first time) =="
.venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[$extras]"
echo "== ready =="
