#!/usr/bin/env bash
# Installs the build into a folder of its own, builds examples/quickstart against it and runs it.
set -euo pipefail
build=$1 compiler=$2
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cmake --install "$build" --prefix "$folder/installed" >"$folder/install.log" || { cat "$folder/install.log"; exit 1; }
cp -r "$source/examples/quickstart" "$folder/source"  # Elsewhere, so that nothing of this tree is found by chance.
cmake -S "$folder/source" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Werror" -DCMAKE_PREFIX_PATH="$folder/installed" >"$folder/configure.log" ||
  { cat "$folder/configure.log"; exit 1; }
grep -q "unmoor_DIR:PATH=$folder/installed" "$folder/build/CMakeCache.txt" || { echo "another unmoor was found"; exit 1; }
cmake --build "$folder/build"
PATH="$folder/installed/bin:$PATH" "$folder/build/quickstart" "$source/examples/models/ppocr4-rec.onnx" | tee "$folder/output"
grep -q 'float32\[1,40,6625\]' "$folder/output"
