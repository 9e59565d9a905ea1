#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the wheel of dist/ into a fresh virtual environment of a Python, with one torch, runs
# README's Python example there, and then the package's tests, which need pytest and NumPy too.
#
#   scripts/check_wheel.sh python3.12 torch==2.11.0
set -eu
cd "$(dirname "$0")/.."
python=$1 torch=$2
wheel=$(ls "$PWD"/dist/similis-*.whl)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
pip="$folder/venv/bin/python -m pip --disable-pip-version-check --quiet"
$pip install "$wheel" "$torch"
sed -n '/^```python/,/^```/{/^```/!p}' README.md >"$folder/readme.py"
(cd "$folder" && venv/bin/python readme.py)
$pip install pytest numpy
# A copy of the tests and of what they read: nothing is imported from here.
mkdir -p "$folder/source/include"
cp -r README.md pyproject.toml docs examples "$folder/source"
cp -r include/similis "$folder/source/include"
mkdir "$folder/source/python"
cp -r python/tests "$folder/source/python"
(cd "$folder/source" && ../venv/bin/python -m pytest -q -rs -p no:cacheprovider)
