#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh PRESET [TARGET...]: configures where that is needed and builds; inside the environment.
set -eu
preset=$1
shift
cd "$(dirname "$0")/../.."
folder=build/$preset
case $preset in
  arm64 | *_arm64) tools/dev/cross_root.sh "$HEARTH_CACHE_DIR/arm64" ;;
esac
# A copied or moved checkout: CMake refuses a cache of another place.
if [ -f "$folder/CMakeCache.txt" ] &&
  ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$folder/CMakeCache.txt"; then
  rm -rf "$folder"
fi
# CMake itself looks after its lists, but neither after an interrupted run nor after the presets.
if [ ! -f "$folder/configured" ] || [ CMakePresets.json -nt "$folder/configured" ]; then
  cmake --preset "$preset"
  touch "$folder/configured"
fi
# Checkouts share what the compiler cache holds. It knows a source again by the files that it includes,
# and does not preprocess it for that.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1
# The prefix is a list that ends at spaces.
case $PWD in
  *\ *) ;;
  *) export CCACHE_PREFIX=$PWD/tools/dev/compile.sh ;;
esac
if [ $# -gt 0 ]; then
  exec cmake --build "$folder" --target "$@"
fi
exec cmake --build "$folder"
